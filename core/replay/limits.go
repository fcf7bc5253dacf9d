package replay

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/replay/internal/accesslog"
)

// limits decide calls by Guards of a Limiter that counts in this process, by the clock of the logs.
type limits struct {
	limiter *core.Limiter
	guards  []guard
	now     atomic.Int64 // in microseconds since the epoch
	view    view
	passed  []core.Answer // of the Guards that the present call has passed
	running inFlight
}

// guard is a Guard and where it is attached.
type guard struct {
	*core.Guard
	scope *pathmatch.Scope
}

// newLimiter makes the Limiter, which counts by the clock of the logs and forgets no counter.
func (l *limits) newLimiter(options *Options, decided func(core.Event)) (err error) {
	l.limiter, err = core.New(core.Options{
		MaxKeys: math.MaxInt32, Identify: l.identify, ClientIP: options.ClientIP, Headers: core.NoHeaders,
		Logger: slog.New(slog.DiscardHandler), OnDecision: func(_ context.Context, e core.Event) { decided(e) },
	})
	if err == nil {
		(*limiter.Limiter[core.Rule])(l.limiter).Parts().Memory.UseClock(l.now.Load)
	}
	return err
}

// newLimits returns the limits of the options' Guards, whose decisions the tally receives.
func newLimits(options *Options, t *tally) (l *limits, err error) {
	l = new(limits)
	err = l.newLimiter(options, func(e core.Event) { t.decided(&l.view, e) })
	if err != nil {
		return nil, err
	}
	for _, g := range options.Guards {
		var rules []core.Rule
		for _, r := range g.Rules {
			rules = append(rules, t.forCalls(r, &l.view))
		}
		if err := l.attach(g, rules...); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

// attach makes a Guard of these rules, where g is attached.
func (l *limits) attach(g Guard, rules ...core.Rule) error {
	made, err := l.limiter.Guard(rules...)
	if err != nil {
		return err
	}
	scope := pathmatch.NewScope(g.Methods, g.Paths, nil)
	l.guards = append(l.guards, guard{made, &scope})
	return nil
}

// fillIn gives rules with Seconds and MaxCount the Limit that they stand for.
func (l *limits) fillIn(guards []Guard) {
	attached, _ := (*limiter.Limiter[core.Rule])(l.limiter).Front().Attached()
	for _, g := range guards {
		for i := range g.Rules {
			if r := &g.Rules[i]; r.Limit == (core.Limit{}) && len(attached) > i {
				r.Limit, r.Seconds, r.MaxCount = attached[i].Rule.Limit, 0, 0
			}
		}
		attached = attached[min(len(g.Rules), len(attached)):]
	}
}

// identify returns the user in the log.
func (l *limits) identify(core.Request) (string, error) { return l.view.call.User, nil }

// decide decides a call, and reports whether it was refused.
func (l *limits) decide(c *accesslog.Call) (refused bool) {
	l.running.endUntil(c.Began, &l.now)
	l.view.show(c)
	l.passed = l.passed[:0]
	var readings pathmatch.Readings
	for _, g := range l.guards {
		if !g.scope.Applies(&l.view, &readings) {
			continue
		}
		answer := g.Check(&l.view)
		if answer.Refusal != nil {
			l.end(answer.Refusal.Status)
			return true
		}
		if !answer.Final() {
			l.passed = append(l.passed, answer)
		}
	}
	l.begin(c)
	return false
}

// end ends a call for the Guards that it has passed.
func (l *limits) end(status int) {
	for _, answer := range l.passed {
		answer.Run(func() int { return status })
	}
}

// begin lets a call run for as long as it took.
func (l *limits) begin(c *accesslog.Call) {
	if c.Took == 0 {
		l.end(c.Status)
		return
	}
	for _, answer := range l.passed {
		l.running.begin(answer, c.Began+c.Took, c.Status)
	}
}

// close ends the Limiter.
func (l *limits) close() {
	l.running.abandon()
	l.limiter.Close()
}
