package adaptertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// traced is how many lines of a trace are kept: those of the latest few calls.
const traced = 24

// trace has the latest requests of a scenario, and what the adapter's View returned for each
// decision. It is printed if the scenario fails, because a failure's message says only what was
// wrong.
type trace struct {
	mu    sync.Mutex
	lines []string
}

func (tr *trace) note(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines[max(0, len(tr.lines)+1-traced):], fmt.Sprintf(format, args...))
}

func (tr *trace) request(c Call) {
	tr.note("%s %.200q of host %q with %.200q", c.Method, c.Path, c.Host, c.Header)
}

// noteDecisions makes a limiter add its decisions to the trace.
func (tr *trace) noteDecisions(o *core.Options) {
	next := o.OnDecision
	o.OnDecision = func(ctx context.Context, e core.Event) {
		d := &e.Decision
		tr.note("  the view returned method %q, path %.200q, route %.200q and address %v; %q counted %.200q: %s",
			e.Method, e.Path, e.Route, e.ClientIP, d.Rule, d.Key, d.Reason)
		if next != nil {
			next(ctx, e)
		}
	}
}

// print prints the trace if the test has failed.
func (tr *trace) print(t testing.TB) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if t.Failed() {
		t.Logf("the latest requests:\n%s", strings.Join(tr.lines, "\n"))
	}
}
