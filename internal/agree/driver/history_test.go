package driver

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/agree/wall"
)

// beginning is the time at which each history begins. It is so late that no key expires on the real
// server.
var beginning = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)

// history is what happens to one service.
type history struct {
	design
	client    *client // nil in process
	logger    *slog.Logger
	processes []*process

	decisions map[int]core.Decision // by the operations that they answered
	bills     map[int]bill
	releases  map[int]func()
	cancels   map[int]context.CancelFunc // of turns that are waited for
	ends      map[int]chan struct{}      // closed when the handler of a call may end
	stepped   bool                       // the clock stepped
	ending    bool                       // an override has an end
	own       map[string]core.Limit      // of rules that have one limit, by their names
	obeying   map[string]bool            // the names of rules on whose subjects operators act
	acted     bool                       // an operator has acted
	bans      map[string]bool            // the names of rules with Ban, "" for those without a name
	refused   bool                       // one of them has refused somebody

	times []int     // when the lines that are left begin, in nanoseconds, or nil
	began time.Time // when the present line began

	mu     sync.Mutex
	notes  []string             // what can be seen of the operation so far
	later  []string             // the same of what happens beside it, in no order
	edges  [reset + 1]time.Time // see edge
	latest [reset + 1]time.Time // of the present operation
}

// edge is a moment at which an answer may change. Operations like to come just then, or a microsecond
// earlier.
type edge int

const (
	none  edge = iota
	retry      // the last refused call passes
	reset      // the counter that answered last equals a fresh one
)

// longestWait bounds the waits for an edge: each second of them is a sweep in the process.
const longestWait = 2 * time.Minute

// bill is an open bill, and the counter that it is of.
type bill struct {
	*core.Bill
	of int
}

// run returns what can be seen of a history: a line for each operation. If there are times, the lines
// begin then.
func run(t *testing.T, server *client, seed, number uint64, length int, without map[int]bool, times []int) (seen string) {
	h := &history{
		times:     times,
		decisions: make(map[int]core.Decision), bills: make(map[int]bill), releases: make(map[int]func()),
		own: make(map[string]core.Limit), obeying: make(map[string]bool), bans: make(map[string]bool), cancels: make(map[int]context.CancelFunc), ends: make(map[int]chan struct{}), logger: slog.New(slog.DiscardHandler),
	}
	r := rand.New(rand.NewPCG(seed, number))
	h.design = draw(r)
	processes := 1
	if number%redisEvery == 0 {
		h.client = server
		processes += r.IntN(2)
		server.flush()
	}
	operations := plan(r, &h.design, processes, length)
	synctest.Test(t, func(*testing.T) { seen = h.play(operations, processes, without) })
	return seen
}

// redisEvery is how many histories there are for each on Redis, which takes fifteen times as long.
const redisEvery = 5

func (h *history) play(operations []operation, processes int, without map[int]bool) string {
	h.begin()
	var seen strings.Builder
	options := h.timed(h.options)
	for range processes {
		d := h.design
		d.options = options
		h.processes = append(h.processes, h.start(d))
	}
	h.settleDown(&seen, "begin")
	for _, o := range operations {
		if without[o.id] {
			continue
		}
		h.await(o)
		kinds[o.kind].do(h, h.processes[o.process], o)
		h.settleDown(&seen, o.String())
	}
	h.finish(&seen)
	return seen.String()
}

// await waits until it is time for an operation.
func (h *history) await(o operation) {
	if h.times == nil {
		time.Sleep(o.wait)
		if left := time.Until(h.edges[o.until]); left > 0 && left < longestWait {
			time.Sleep(left - time.Duration(o.early)*time.Microsecond)
		}
	}
	h.awaitLine()
}

// awaitLine waits until the present line begins.
func (h *history) awaitLine() {
	if len(h.times) > 0 {
		time.Sleep(time.Until(beginning.Add(time.Duration(h.times[0]))))
	}
	synctest.Wait() // for timers of the same moment
	h.began = time.Now()
}

// begin sets the clocks.
func (h *history) begin() {
	wall.Set(0)
	if h.client != nil {
		h.client.ahead.Store(0)
		h.client.down.Store(false)
	}
	time.Sleep(time.Until(beginning))
	h.began = time.Now()
}

// settleDown waits until nothing happens any more and writes down what was seen.
func (h *history) settleDown(seen *strings.Builder, what string) {
	synctest.Wait()
	h.awaitMarks()
	for i, at := range h.latest {
		if !at.IsZero() {
			h.edges[i] = at
		}
	}
	clear(h.latest[:])
	slices.Sort(h.later)
	all := strings.Join(append(h.notes, h.later...), " ; ")
	fmt.Fprintf(seen, "+%dns %s -> %s\n", h.began.Sub(beginning), what, strings.ReplaceAll(all, "\n", `\n`))
	h.notes, h.later, h.began = h.notes[:0], h.later[:0], time.Now()
	h.times = h.times[min(1, len(h.times)):]
}

// twiceGathered is how long it takes at most until a refusal bans. Refusals are gathered for 10 ms, and those
// that come meanwhile for another 10 ms.
const twiceGathered = 20 * time.Millisecond

// awaitMarks waits until all processes have read the marks that may have changed: after an act, by
// themselves.
func (h *history) awaitMarks() {
	h.mu.Lock()
	acted, refused := h.acted, h.refused
	h.acted, h.refused = false, false
	h.mu.Unlock()
	switch {
	case h.client == nil:
	case acted:
		time.Sleep(time.Second)
	case refused:
		time.Sleep(twiceGathered)
		for _, p := range h.processes {
			if !h.client.down.Load() {
				readMarks(p.operator)
			}
		}
	}
	synctest.Wait()
}

// finish ends what is still under way, and looks at all reports.
func (h *history) finish(seen *strings.Builder) {
	if h.client != nil {
		h.client.down.Store(false)
	}
	for _, id := range sorted(h.ends) {
		h.awaitLine()
		close(h.ends[id])
		h.settleDown(seen, fmt.Sprint("end ", id))
	}
	for _, id := range sorted(h.cancels) {
		h.awaitLine()
		h.cancels[id]()
		h.settleDown(seen, fmt.Sprint("leave ", id))
	}
	h.awaitLine()
	for _, id := range sorted(h.releases) {
		h.releases[id]()
	}
	h.settleDown(seen, "release")
	time.Sleep(31 * time.Second) // until lists and leases are written back
	h.awaitLine()
	for _, report := range reports {
		for i, p := range h.processes {
			report.do(h, p)
			h.settleDown(seen, fmt.Sprint(report.name, " ", i))
		}
	}
	for _, p := range h.processes {
		p.limiter.Close()
	}
	h.settleDown(seen, "close")
}

func sorted[V any](m map[int]V) (ids []int) {
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// notef adds to what is seen of the present operation.
func (h *history) notef(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, fmt.Sprintf(format, args...))
}

// laterf is notef for what happens in the background.
func (h *history) laterf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.later = append(h.later, fmt.Sprintf(format, args...))
}

// decided notes the answer to an operation.
func (h *history) decided(o operation, d core.Decision, err error) {
	if err != nil {
		h.notef("%s", showError(err))
	}
	if d.Reason != "" {
		h.notef("%s", show(d))
	}
	h.remember(d)
	h.decisions[o.id] = d
}

// remember keeps the edges of a decision, if they are the latest of the present operation.
func (h *history) remember(d core.Decision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = h.refused || h.mayBan(d)
	if d.RetryAfter > 0 {
		h.latest[retry] = latest(h.latest[retry], time.Now().Add(d.RetryAfter))
	}
	if d.ResetAfter > 0 {
		h.latest[reset] = latest(h.latest[reset], time.Now().Add(d.ResetAfter))
	}
}

// mayBan reports whether a rule with Ban has refused the call. In the older version, a refusal that
// leads to a ban says so itself.
func (h *history) mayBan(d core.Decision) bool {
	refused := d.Reason == core.LimitExceeded || d.Reason == core.Banned && d.Source != "marks"
	named := h.bans[d.Rule] || h.bans[""] && strings.Contains(d.Rule, "/")
	return refused && named || slices.ContainsFunc(d.All, h.mayBan)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
