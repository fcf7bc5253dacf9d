package inflight_test

import (
	"errors"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
)

// keyOf returns the key of a subject's counter.
func keyOf(subject string) string { return "p:{" + subject + "}:n:fw1:1" }

// noted counts what becomes of estimates.
type noted struct{ opened, settled, used, missed int64 }

func (n *noted) Open(estimate int64)         { n.opened += estimate }
func (n *noted) Settle(estimate, used int64) { n.settled += estimate; n.used += used }
func (n *noted) Miss()                       { n.missed++ }
func (n *noted) Exceed(uint64)               {}

// A settlement that failed can be repeated until the call ends. If the store may have carried it
// out, it is the same settlement: see TestASettlementWhoseReplyIsLost in core.
func TestASettlementThatFails(t *testing.T) {
	unreachable, lost := &failure.Error{Class: failure.Unreachable}, &failure.Error{Class: failure.Lost}
	for name, test := range map[string]struct {
		used, then int64 // of an estimate of 1
		failed     error
		status     algorithm.BillStatus
	}{
		"never sent, and too much was charged":   {0, 0, unreachable, algorithm.BillChanged},
		"never sent, and too little was charged": {3, 3, unreachable, algorithm.BillChanged},
		"no reply, and too much was charged":     {0, 0, lost, algorithm.BillChanged},
		"no reply, and too little was charged":   {3, 3, lost, algorithm.BillChanged},
		"no reply, and then another number":      {0, 3, lost, algorithm.BillSettled},
	} {
		t.Run(name, func(t *testing.T) {
			w, five := newWorld(t), limited(algorithm.FixedWindow, 5, time.Hour)
			w.brokenBy, w.brokenGiveBacks, w.brokenCharges = test.failed, 1, 1
			e := w.NewEstimates()
			costs := new(noted)
			e.AddRule("n", 1, costs)
			e.Add(w.take(t, keyOf("s"), five), 0, nil, nil)
			if _, err := e.Settle(background, "n", test.used); !errors.Is(err, test.failed) {
				t.Errorf("%v, want %v", err, test.failed)
			}
			w.wantLeft(t, keyOf("s"), five, 4)
			used := test.then
			if test.status == algorithm.BillSettled {
				used = test.used
			}
			if a, err := e.Settle(background, "n", test.then); err != nil || a.Status != test.status {
				t.Errorf("again: %+v, %v", a, err)
			}
			w.wantLeft(t, keyOf("s"), five, 5-used)
			u := w.NewCompletion(background, false, false)
			u.Settles(e)
			u.Run(func() int { return 200 })
			if _, err := e.Settle(background, "n", test.used); err != inflight.ErrEnded {
				t.Errorf("at the end: %v", err)
			}
			if want := (noted{1, 1, used, 1}); *costs != want {
				t.Errorf("counted %+v, want %+v", *costs, want)
			}
		})
	}
}

// If one of two rules with the same name could not be settled, settling them again settles that one.
func TestASettlementThatFailsForOneOfTwoRules(t *testing.T) {
	for failing, used := range map[string]int64{"a": 3, "b": 0} { // the first charges more, or the second gives back
		w, five := newWorld(t), limited(algorithm.FixedWindow, 5, time.Hour)
		e := w.NewEstimates()
		for _, subject := range []string{"a", "b"} {
			e.AddRule("n", 1, new(noted))
			e.Add(w.take(t, keyOf(subject), five), 0, nil, nil)
		}
		w.brokenBy, w.brokenCharges = &failure.Error{Class: failure.Unreachable}, 1
		if failing == "b" {
			w.passedGiveBacks, w.brokenGiveBacks = 1, 1
		}
		if _, err := e.Settle(background, "n", used); err == nil {
			t.Errorf("%s: no error", failing)
		}
		if a, err := e.Settle(background, "n", used); err != nil || a.Status != algorithm.BillChanged {
			t.Errorf("%s: again: %+v, %v", failing, a, err)
		}
		if a, err := e.Settle(background, "n", used); err != nil || a.Status != algorithm.BillSettled || a.Used != used {
			t.Errorf("%s: once more: %+v, %v", failing, a, err)
		}
		w.wantLeft(t, keyOf("a"), five, 5-used)
		w.wantLeft(t, keyOf("b"), five, 5-used)
	}
}
