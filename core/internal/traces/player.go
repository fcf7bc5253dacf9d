package traces

import (
	"context"
	"errors"
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
	"github.com/accesslimit/accesslimit/core/operate"
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
	ban     core.Ban

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

func (w *watched) Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	w.Store.Decide(ctx, counters, charge, verdicts)
	if c := &counters[0]; charge && c.Limit.Properties().Slots {
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
	case "ban":
		p.ban, _ = parseBan(value)
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
	d, word, err := p.do(s)
	p.seen = d
	answer := p.cells(d, word, err)
	if lost := p.limiter.Stats().RefundsLost; lost > p.lost {
		answer, p.lost = append(answer, fmt.Sprintf("lost %d", lost-p.lost)), lost
	}
	return append(answer, p.keys(t)...)
}

// do does a step. The word says what became of it, unless the decision or the error does.
func (p *player) do(s *step) (d core.Decision, word string, err error) {
	ctx := context.Background()
	switch s.do {
	case "look":
		d, err = p.look()
	case "take N":
		d, err = p.take(s)
	case "take up to N":
		var granted int
		if granted, d, err = p.counter().AllowUpTo(ctx, subject, s.n); granted > 0 {
			word = fmt.Sprintf("takes %d", granted)
		}
	case "charge N":
		if d, err = p.counter().Charge(ctx, subject, s.n); err == nil {
			word = "charged"
		}
	case "turn N":
		d, err = p.turn(s)
	case "open N as X":
		var bill *core.Bill
		if bill, d, err = p.counter().Open(ctx, subject, s.n); err == nil && d.Allowed {
			p.bills[s.as], p.keeps = bill, true
		}
	case "hold as X":
		d, err = p.hold(s)
	default:
		if word, err = p.change(s); errors.Is(err, errName) {
			return d, "", err
		}
		var wrong error
		if d, wrong = p.look(); wrong != nil {
			err = wrong
		}
		return d, word, err
	}
	if s.as != "" && err == nil && d.Allowed {
		p.charges[s.as] = d
	}
	return d, word, err
}

// errName is the error of a name that no charge has.
var errName = errors.New("no such charge")

// change does what has no decision.
func (p *player) change(s *step) (word string, err error) {
	ctx := context.Background()
	word = "done"
	switch s.do {
	case "give back N of X":
		d, known := p.charges[s.of]
		if !known {
			return "", errName
		}
		err = p.limiter.Refund(ctx, d, s.n)
	case "add N to X":
		err = p.bills[s.of].Add(ctx, s.n)
	case "settle X at N":
		err = p.bills[s.of].Settle(ctx, s.n)
	case "cancel X":
		err = p.bills[s.of].Cancel(ctx)
	case "renew X", "release X":
		slot, known := p.slots[s.of]
		switch {
		case !known:
			return "", errName
		case s.do == "renew X":
			err = p.store.Renew(ctx, []algorithm.Charge{slot.charge})
		default:
			slot.release()
		}
	case "ban for D":
		_, err = operate.New(p.limiter).Ban(ctx, rule, subject, s.span)
	case "reset":
		var changed bool
		if changed, err = p.reset(); !changed {
			word = "was fresh"
		}
	}
	return word, err
}

func (p *player) reset() (changed bool, err error) {
	if p.ban != (core.Ban{}) {
		return p.check().Reset(context.Background(), subject)
	}
	if p.isSlots() {
		return p.slotsOf().Reset(context.Background(), subject)
	}
	return p.counter().Reset(context.Background(), subject)
}

func (p *player) isSlots() bool { return algorithm.Kind(p.limit.Algorithm).OfLimit().Slots }

func (p *player) slotsOf() core.Slots {
	slots, _ := p.limiter.Slots(rule, p.limit.Max)
	return slots.LostAfter(p.limit.Window)
}

func (p *player) counter() core.Counter {
	var also []core.Limit
	if p.beside {
		also = append(also, besides)
	}
	counter, _ := p.limiter.Counter(rule, p.limit, also...)
	return counter.WithBills(p.terms)
}

func (p *player) look() (core.Decision, error) {
	switch {
	case p.isSlots():
		return p.slotsOf().Peek(context.Background(), subject)
	case p.ban != core.Ban{}:
		return p.counterAlone().Peek(context.Background(), subject)
	}
	return p.counter().Peek(context.Background(), subject)
}

// check is the rule with a ban.
func (p *player) check() *core.Check {
	return p.limiter.MustCheck(core.Rule{Name: rule, Limit: p.limit, Ban: p.ban})
}

// counterAlone is the counter of a rule, which has no further limit.
func (p *player) counterAlone() core.Counter {
	counter, _ := p.limiter.Counter(rule, p.limit)
	return counter
}

func (p *player) take(s *step) (d core.Decision, err error) {
	ctx := context.Background()
	switch {
	case p.ban != core.Ban{}:
		p.check().Allow(limitertest.NewView("GET", "/"), subject).Run(func() int { return 200 })
		return p.last, nil
	case s.note != "":
		log, err := p.limiter.Log(rule, p.limit)
		if err != nil {
			return d, err
		}
		return log.AllowN(ctx, subject, s.n, s.note)
	}
	return p.counter().AllowN(ctx, subject, s.n)
}

// longestTurn is for how long a turn with patience may really be waited for.
const longestTurn = 10 * time.Millisecond

func (p *player) turn(s *step) (d core.Decision, err error) {
	pacer, err := p.limiter.Pacer(rule, p.limit)
	if err != nil {
		return d, err
	}
	if s.span == 0 {
		return pacer.Reserve(context.Background(), subject, s.n)
	}
	d, err = pacer.TryAcquire(context.Background(), subject, s.n, min(s.span, longestTurn))
	if err == nil {
		d.Wait = p.last.Wait
	}
	return d, err
}

func (p *player) hold(s *step) (core.Decision, error) {
	release, d, err := p.slotsOf().Hold(context.Background(), subject)
	if err == nil && d.Allowed {
		if before, held := p.slots[s.as]; held {
			before.release()
		}
		p.slots[s.as] = slot{release, p.store.slot}
	}
	return d, err
}

// records returns what a log lists, or nil if that is not asked.
func (p *player) records(s *step) (all []string) {
	if s.do != "records" {
		return nil
	}
	log, err := p.limiter.Log(rule, p.limit)
	if err != nil {
		return []string{wordOf(err)}
	}
	records, err := log.Records(context.Background(), subject)
	if err != nil {
		return []string{wordOf(err)}
	}
	all = []string{fmt.Sprintf("lists %d", len(records))}
	for _, r := range records {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d at %s %s", r.Cost, show(r.Time.Sub(p.start)), r.Note)))
	}
	return all
}

// cells returns what a decision and an error say.
func (p *player) cells(d core.Decision, word string, err error) (cells []string) {
	if err != nil {
		word = wordOf(err)
	}
	for _, one := range d.All {
		if one.Limit == p.limit {
			d.Remaining, d.ResetAfter, d.RetryAfter = one.Remaining, one.ResetAfter, one.RetryAfter
		}
	}
	switch {
	case d.Reason == "":
		return []string{word}
	case word != "":
	case d.Reason == core.Banned:
		return []string{"banned", "retry " + show(d.RetryAfter)}
	case d.Allowed:
		word = "passes"
	default:
		word = "refused"
	}
	cells = []string{word, fmt.Sprintf("left %d", d.Remaining), "reset " + show(d.ResetAfter)}
	if !d.Allowed {
		cells = append(cells, "retry "+show(d.RetryAfter))
	}
	if d.Wait > 0 {
		cells = append(cells, "wait "+show(d.Wait))
	}
	return cells
}

// wordOf returns an error in a word or two.
func wordOf(err error) string {
	var wrong *core.RuleError
	switch _, detail, _ := strings.Cut(err.Error(), ", "); {
	case errors.Is(err, core.ErrCostExceedsLimit):
		return "never fits"
	case errors.Is(err, core.ErrDebtExceeded):
		return "charged all but " + strings.Fields(strings.TrimPrefix(err.Error(), core.ErrDebtExceeded.Error()+": "))[0]
	case errors.Is(err, core.ErrBillUnknown):
		return "no bill"
	case errors.Is(err, core.ErrBillSettled):
		return "settled " + detail
	case errors.Is(err, errName), errors.As(err, &wrong):
		return "wrong"
	default:
		return "FAILED " + err.Error()
	}
}

// keys returns when the counter's key expires. In this process there are none.
func (p *player) keys(t testing.TB) (cells []string) {
	if p.server == nil {
		return nil
	}
	ctx, head := context.Background(), p.prefix+":{"+subject+"}:"+rule+":"
	keys, err := p.server.Keys(ctx, head+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	for _, key := range keys {
		of, what := strings.TrimPrefix(key, head), "key"
		switch {
		case strings.HasPrefix(of, "bl1:"), strings.HasPrefix(of, "by1"), strings.HasSuffix(of, fmt.Sprint(":", besides.Window.Microseconds())):
			continue
		case strings.HasPrefix(of, algorithm.Ban.Tag()):
			what = "ban key"
		}
		at, err := scriptclock.ExpireTime(ctx, p.server, key).Int64()
		if err != nil || at < 0 {
			t.Errorf("%s expires at %d, %v", key, at, err)
		}
		if at*1000 > p.now.Load() {
			cells = append(cells, fmt.Sprintf("%s until %s", what, show(time.UnixMilli(at).Sub(p.start))))
		}
	}
	if cells == nil {
		return []string{"no key"}
	}
	slices.SortStableFunc(cells, func(a, b string) int { return strings.Compare(b[:1], a[:1]) }) // bans last
	return cells
}
