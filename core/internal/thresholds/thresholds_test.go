package thresholds_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/notices"
	"github.com/accesslimit/accesslimit/core/internal/thresholds"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// board has each notice for the first time, and remembers the keys.
type board struct {
	mu   sync.Mutex
	keys []string
}

func (b *board) Post(_ context.Context, batch []notices.Notice) []notices.Posted {
	b.mu.Lock()
	defer b.mu.Unlock()
	posted := make([]notices.Posted, len(batch))
	for i, n := range batch {
		b.keys = append(b.keys, n.Key+" "+n.Limit)
		posted[i].First = true
	}
	return posted
}

// panicsOnly fails the test at any message but those about panics, which it keeps.
type panicsOnly struct {
	*testing.T
	rule, value string
}

func (p *panicsOnly) NoticesDropped()        { p.Error("a notice was dropped") }
func (p *panicsOnly) NoticeFailed(err error) { p.Error(err) }
func (p *panicsOnly) NoticesOff(err error)   { p.Error(err) }
func (p *panicsOnly) Panicked(err error)     { p.Error(err) }
func (p *panicsOnly) OnThresholdPanicked(rule, value string, _ []byte) {
	p.rule, p.value = rule, value
}

var (
	window  = algorithm.Windowed(algorithm.FixedWindow, 10, 60_000_000)
	api     = thresholds.Charge{Rule: "api", Subject: []byte("user:a"), Warn: []float64{0.5, 0.8, 1}, Max: 10}
	inForce = func() string { return "10 a minute" }
)

// charge returns the verdict of a charge that took permits and left some.
func charge(took, left int64) *algorithm.Verdict {
	return &algorithm.Verdict{At: 1_000_000, Taken: took, Remaining: left, From: algorithm.FromStore, ResetAfter: 7}
}

// Each fraction that a charge reaches is reported, and no other.
func TestCharged(t *testing.T) {
	var b board
	var heard []string
	w := thresholds.New(&b, "test:{", &panicsOnly{T: t}, func(_ context.Context, r thresholds.Reached[string]) {
		heard = append(heard, fmt.Sprintf("%s %s %s: %v, %d used, fresh in %d", r.Rule, r.Subject, r.Limit, r.Fraction, r.Used, r.ResetAfter))
	})
	for _, v := range []*algorithm.Verdict{charge(4, 6), charge(5, 1), charge(1, 0)} {
		w.Charged(&api, inForce, &algorithm.Counter{Limit: &window}, v)
	}
	local := charge(9, 0)
	local.From = algorithm.FromLocal
	w.Charged(&api, inForce, &algorithm.Counter{Limit: &window}, local)
	w.Close(time.Minute)
	want := []string{
		"api user:a 10 a minute: 0.5, 9 used, fresh in 7", "api user:a 10 a minute: 0.8, 9 used, fresh in 7",
		"api user:a 10 a minute: 1, 10 used, fresh in 7",
	}
	if !slices.Equal(heard, want) {
		t.Errorf("reported: %q", heard)
	}
	if len(b.keys) != 3 || b.keys[0] != "test:{user:a}:api%n2-0.5:fw1:60000000 10/10" {
		t.Errorf("notices: %q", b.keys)
	}
}

// A threshold that was forgotten is reported again. A report that panics is logged, and loses no other.
func TestForgetAndPanics(t *testing.T) {
	log := &panicsOnly{T: t}
	heard := 0
	w := thresholds.New(new(board), "test:{", log, func(context.Context, thresholds.Reached[string]) {
		if heard++; heard == 1 {
			panic("broken")
		}
	})
	half := api
	half.Warn = []float64{0.5}
	for range 3 { // the last one is known
		w.Charged(&half, inForce, &algorithm.Counter{Limit: &window}, charge(5, 5))
		w.Await(context.Background())
		if heard == 1 {
			w.Forget([]byte("test:{user:a}:api%n2-0.5:fw1:60000000"))
		}
	}
	w.Close(time.Minute)
	if heard != 2 || log.rule != "api" || log.value != "broken" {
		t.Errorf("%d reports, and a panic %q of %q", heard, log.value, log.rule)
	}
}

// A nil Watch reports nothing.
func TestNil(*testing.T) {
	var w *thresholds.Watch[string]
	w.Charged(&api, inForce, &algorithm.Counter{Limit: &window}, charge(5, 5))
	w.Forget([]byte("key"))
	w.Close(time.Minute)
}
