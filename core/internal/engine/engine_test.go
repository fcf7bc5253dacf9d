package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

const (
	hour = 3600 * 1_000_000
	day  = 24 * hour
	head = "p:{"
)

var (
	background = context.Background()
	errAway    = errors.New("away")
)

// world is an engine on the store of this process, at midnight, and what it noticed.
type world struct {
	engine.Engine
	store   *store
	noticed []string
	holders int
}

func newWorld(t testing.TB) *world {
	s := &store{Store: memstore.New(100_000, func() int64 { return 20_000 * day })}
	bounded.Cleanup(t, s.Close)
	w := &world{store: s}
	w.Engine = engine.Engine{Store: s, KeyHead: head, Slots: w, Turns: s}
	return w
}

// NewHolder implements engine.Slots.
func (w *world) NewHolder() string {
	w.holders++
	return fmt.Sprint("holder", w.holders)
}

// take returns what was noticed, and forgets it.
func (w *world) take() string {
	noticed := strings.Join(w.noticed, ", ")
	w.noticed = nil
	return noticed
}

// store is the store of this process, unless the test has the answers.
type store struct {
	*memstore.Store
	answers []algorithm.Verdict
	asked   []string
}

func (s *store) Do(ctx context.Context, op *algorithm.Op) {
	if len(op.Counters) != len(op.Verdicts) {
		panic(fmt.Sprint(len(op.Verdicts), " verdicts on ", len(op.Counters), " counters"))
	}
	switch {
	case op.MayRecall:
		s.asked = append(s.asked, "look")
	case op.Mode == algorithm.Looks || op.Mode == algorithm.AllOrNone:
		s.asked = append(s.asked, fmt.Sprintf("decide %d, charge %t, lease %d", len(op.Counters), op.Charges(), op.Counters[0].Lease))
	}
	if s.answers == nil {
		s.Store.Do(ctx, op)
		return
	}
	copy(op.Verdicts, s.answers)
}

// memory remembers the refusals that a test says.
type memory struct {
	*store
	recalled []algorithm.Verdict
}

func (m *memory) Recall(op *algorithm.Op) bool {
	return m.recalled != nil && copy(op.Verdicts, m.recalled) == len(op.Counters)
}

// call is a call that notes what its engine notices.
type call struct {
	engine.Call
	of      *world
	applied []*engine.Applied
}

func (w *world) open() *call {
	c := &call{of: w}
	c.Call = w.NewCall(c, 1)
	return c
}

func (c *call) note(format string, args ...any) {
	c.of.noticed = append(c.of.noticed, fmt.Sprintf(format, args...))
}

func (c *call) Decided(at int, d engine.Decided) {
	text := fmt.Sprint(c.limitName(at), " decided ", d.Outcome)
	for _, flag := range []struct {
		set  bool
		name string
	}{{d.Usual, "usual"}, {d.Bound, "bound"}, {d.Near, "near"}, {d.Refused, "refused"}} {
		if flag.set {
			text += " " + flag.name
		}
	}
	c.note("%s", text)
}

func (c *call) Charged(at int, warn []float64) { c.note("%s charged, %v", c.limitName(at), warn) }

func (c *call) StoreFailed(a *engine.Applied, err error) { c.note("%s failed: %v", a.Rule.Name, err) }

// by is a rule that applies to a call, and what the call is by it. Unless the test says otherwise,
// the subject is a and the cost is 1.
type by struct {
	*engine.Rule
	cost                                int64
	own                                 *engine.Limit
	instead                             []*engine.Limit
	mark                                marks.Kind
	lasts                               int64
	subject, note                       string
	free, unlimited, personal, reserves bool
}

// add adds the counters of rules.
func (c *call) add(rules ...by) *call {
	for _, a := range c.apply(rules...) {
		c.Add(a)
	}
	return c
}

func (c *call) apply(rules ...by) []*engine.Applied {
	before := len(c.applied)
	for _, r := range rules {
		a := &engine.Applied{
			Rule: r.Rule, At: len(c.applied), Subject: []byte("a" + r.subject), Cost: max(1, r.cost), Own: r.Limits[0], Note: r.note,
			Personal: r.personal, Reserves: r.reserves, Instead: r.instead, Lasts: r.lasts,
		}
		c.applied = append(c.applied, a)
		if r.mark != "" {
			a.Mark = &marks.Mark{Kind: r.mark}
		}
		if r.own != nil {
			a.Own = r.own
		}
		if r.free {
			a.Cost = 0
		}
		if r.free || r.unlimited {
			a.Own = nil
		}
	}
	return c.applied[before:]
}
