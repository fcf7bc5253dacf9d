package traces

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// Engine is where traces are played: in this process, or on a Redis.
type Engine struct {
	server *redis.Client // nil in process
	change func(text string) (string, error)
	// forgets says that a counter is dropped at the time at which its key expires.
	forgets bool
	// beside has each call charge a further limit, which it never uses up: it is decided by other
	// code than a call with one limit.
	beside bool
	// vary, unless nil, changes a step before it is played.
	vary func(p *player, s *step)
}

// names of the counters of all traces.
const (
	rule    = "name"
	subject = "subject"
)

// besides is the further limit of calls that are played beside. No trace has its window.
var besides = core.Per(limitertest.MostPermits, 999*time.Millisecond).Fixed()

// player plays one trace.
type player struct {
	Engine
	limiter *core.Limiter
	store   *watched
	prefix  string
	start   time.Time
	now     atomic.Int64 // in microseconds since the epoch
	limit   core.Limit
	terms   core.BillTerms

	last    core.Decision // as OnDecision received it
	seen    core.Decision // by the last step
	charges map[string]core.Decision
	bills   map[string]*core.Bill
	slots   map[string]slot
	lost    uint64
	// keeps says that this process may keep more than the keys say: a bill, or a counter from before the
	// clock stepped back. The clock by which it forgets counters steps back only here.
	keeps bool
}

// slot is held by a call in flight.
type slot struct {
	release func()
	charge  algorithm.Charge
}

// watched is a store that knows the slot that was asked for last, which a test can renew then.
type watched struct {
	limiter.Store
	slot algorithm.Charge
}

func (w *watched) Do(ctx context.Context, op *algorithm.Op) {
	w.Store.Do(ctx, op)
	if c := &op.Counters[0]; op.Charges() && c.Limit.Properties().Slots {
		w.slot = algorithm.Charge{Key: slices.Clone(c.Key), Limit: c.Limit, Mark: c.Mark}
	}
}

// prefixes numbers the prefixes by which traces have counters of their own.
var prefixes atomic.Int64

// newPlayer begins a trace. It ends when the test does.
func (e Engine) newPlayer(t testing.TB) *player {
	p := &player{
		Engine: e, prefix: fmt.Sprint("trace", prefixes.Add(1)), start: beginning,
		charges: make(map[string]core.Decision), bills: make(map[string]*core.Bill), slots: make(map[string]slot),
	}
	options := core.Options{
		Prefix: p.prefix, Timeout: limitertest.Patient, Logger: slog.New(slog.DiscardHandler),
		OnDecision: func(_ context.Context, e core.Event) { p.last = e.Decision },
	}
	if e.server != nil {
		options.Redis = scriptclock.NewClient(e.server, p.now.Load, e.change)
	}
	made, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, made.Close)
	p.limiter = made
	parts := (*limiter.Limiter[core.Rule])(made).Parts()
	if e.server == nil {
		parts.Memory.UseClock(p.now.Load)
		parts.Memory.Close() // nothing is swept but by play
		p.store = &watched{Store: parts.Memory}
	} else {
		p.store = &watched{Store: parts.Redis} // no answer is remembered
	}
	parts.Ask(p.store, nil)
	return p
}

// Play plays a trace, and calls answered after each step.
func (e Engine) Play(t testing.TB, of *Trace, answered func(s *step, answer []string)) {
	p := e.newPlayer(t)
	var last *step
	for _, l := range of.lines {
		switch {
		case l.change != "":
			p.set(l.change, l.value)
		case l.step != nil:
			if l.step.late = 0; algorithm.Kind(p.limit.Algorithm).OfLimit().Late {
				l.step.late = p.limit.Window / 32
			}
			last = l.step
			answered(last, p.play(t, last))
		}
	}
	p.end(t, of.Says, last)
}

// set changes the terms of the next calls.
func (p *player) set(change, value string) {
	switch change {
	case "limit":
		p.limit, _ = core.ParseLimit(value)
	case "debt":
		p.terms.MaxDebt, _ = strconv.ParseFloat(value, 64)
	case "start":
		p.start, _ = time.Parse(time.RFC3339, value)
	}
}

// end releases what is held. In this process, nothing must be left when the keys have expired.
func (p *player) end(t testing.TB, says string, last *step) {
	for _, s := range p.slots {
		s.release()
	}
	memory, inProcess := p.store.Store.(*memstore.Store)
	if !inProcess || !p.forgets || p.keeps {
		return
	}
	ends := last.at
	for _, cell := range last.answer {
		ends = max(ends, until(cell))
	}
	p.now.Store(p.start.Add(ends + last.late + besides.Window).UnixMicro())
	if memory.Sweep(); memory.Len() > 0 {
		t.Errorf("%s: %d counters are left when their keys have expired", says, memory.Len())
	}
}

// until returns the time in a cell about a key.
func until(cell string) (d time.Duration) {
	if _, at, found := strings.Cut(cell, "key until "); found {
		d, _ = time.ParseDuration(at)
	}
	return d
}

// play does a step, and returns what is seen.
func (p *player) play(t testing.TB, s *step) []string {
	if p.vary != nil {
		p.vary(p, s)
	}
	now := p.start.Add(s.at).UnixMicro()
	p.keeps = p.keeps || now < p.now.Load()
	p.now.Store(now)
	if memory, inProcess := p.store.Store.(*memstore.Store); inProcess && p.forgets {
		memory.Sweep()
	}
	if records := p.records(s); records != nil {
		return append(records, p.keys(t)...)
	}
	if paused := p.paused(s); paused != nil {
		return append(paused, p.keys(t)...)
	}
	d, word, err := p.do(s)
	p.seen = d
	answer := p.cells(d, word, err)
	if lost := p.limiter.Stats().RefundsLost; lost > p.lost {
		answer, p.lost = append(answer, fmt.Sprintf("lost %d", lost-p.lost)), lost
	}
	return append(answer, p.keys(t)...)
}
