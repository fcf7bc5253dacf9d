// Package thresholds notices that a charge has reached a fraction of a limit, and reports that once
// in a fleet: see package notices.
package thresholds

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/notices"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Charge describes what a charge was made for.
type Charge struct {
	Rule    string
	DryRun  bool
	Subject []byte
	Warn    []float64 // the fractions that are reported, ascending
	Max     int       // the Max of the limit in force; for a bucket, the counter's Max differs
}

// Reached is a report. L is the type of its limit. Times are in microseconds; At counts from the
// epoch, by the store's clock.
type Reached[L any] struct {
	Rule, Subject  string
	Limit          L
	Fraction       float64
	Used           int64 // after the call that reached the fraction
	ResetAfter, At int64
}

// Log receives what an operator should know.
type Log interface {
	notices.Log
	// OnThresholdPanicked reports that the function that receives reports panicked.
	OnThresholdPanicked(rule, value string, stack []byte)
}

// Watch reports thresholds. Make one with New. It is safe for concurrent use. A nil Watch reports
// nothing.
type Watch[L any] struct {
	queue   *notices.Queue
	keyHead string
	log     Log
	report  func(context.Context, Reached[L])
}

// New returns a Watch that posts its notices on a board, and passes reports to report one after the
// other. All keys begin with keyHead.
func New[L any](board notices.Board, keyHead string, log Log, report func(context.Context, Reached[L])) *Watch[L] {
	return &Watch[L]{queue: notices.NewQueue(board, log), keyHead: keyHead, log: log, report: report}
}

// Charged reports the thresholds that a charge has reached. limit returns the limit in force, for
// the report. Only a charge by the store counts, because a local count covers only a share of the
// limit.
func (w *Watch[L]) Charged(c *Charge, limit func() L, counter *algorithm.Counter, v *algorithm.Verdict) {
	if w == nil || v.From != algorithm.FromStore {
		return
	}
	used := counter.Limit.Max - v.Remaining
	for _, fraction := range c.Warn {
		reached := counter.Limit.Reaches(fraction)
		if used < reached {
			return
		}
		if used-v.Taken < reached {
			w.reached(c, limit, counter.Limit, v, fraction)
		}
	}
}

// reached posts a notice of a threshold, unless that was done just before.
func (w *Watch[L]) reached(c *Charge, inForce func() L, counted *algorithm.Limit, v *algorithm.Verdict, fraction float64) {
	var room [rediskey.MaxLen]byte
	key := rediskey.Append(room[:0], w.keyHead, c.Subject, rediskey.NoticeTail(c.Rule, c.DryRun, counted, fraction))
	limit := fmt.Sprint(c.Max, "/", counted.Max)
	if w.queue.Knows(key, limit, v.At) {
		return
	}
	r := Reached[L]{
		Rule: c.Rule, Subject: string(c.Subject), Limit: inForce(), Fraction: fraction, Used: counted.Max - v.Remaining,
		ResetAfter: v.ResetAfter, At: v.At,
	}
	w.queue.Add(notices.Notice{
		Key: string(key), Limit: limit, At: v.At, Ends: v.At + counted.NoticeLife(v), Size: len(key) + len(c.Subject),
		Report: func(ctx context.Context) { w.pass(ctx, r) },
	})
}

// pass passes a report to its receiver. If that panics, only this report is lost.
func (w *Watch[L]) pass(ctx context.Context, r Reached[L]) {
	defer func() {
		if p := recover(); p != nil {
			w.log.OnThresholdPanicked(r.Rule, fmt.Sprint(p), debug.Stack())
		}
	}()
	w.report(ctx, r)
}

// Forget makes the Watch report again the thresholds in the notices with these keys.
func (w *Watch[L]) Forget(keys ...[]byte) {
	if w != nil {
		w.queue.Forget(keys...)
	}
}

// Await returns when all thresholds that were reached so far are reported, or when the context
// ends.
func (w *Watch[L]) Await(ctx context.Context) { w.queue.Await(ctx) }

// Close ends the reports: see [notices.Queue.Close].
func (w *Watch[L]) Close(patience time.Duration) {
	if w != nil {
		w.queue.Close(patience)
	}
}
