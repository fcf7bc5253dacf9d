package operate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// countedCommands returns how many of the commands that Explain and Inspect use a server has carried
// out.
func countedCommands(server *redistest.Server) int {
	return server.Calls("get", "evalsha", "eval", "time")
}

// newCrowded attaches rules of several kinds, of which the first refuses the address 192.0.2.7. The
// limiter sends no commands in the background.
func newCrowded(t *testing.T, options core.Options) *core.Limiter {
	limiter := newLimiter(t, options)
	partsOf(limiter).Marks.Close()
	for i := range 200 {
		rule := core.Rule{Name: fmt.Sprintf("rule-%03d", i), Limit: core.PerHour(100), Ban: core.Ban{After: 3, For: time.Hour}}
		if i%2 == 1 {
			rule.Limit = core.Limit{Max: 100, Window: time.Hour, Algorithm: core.SlidingLog}
		}
		attach(t, limiter, rule)
	}
	return limiter
}

// A call is explained with a bounded number of commands. Whether it would pass is then not known,
// unless one of the rules that are looked at refuses it.
func TestExplainWithFewCommands(t *testing.T) {
	server := redistest.Start(t)
	limiter := newCrowded(t, core.Options{Redis: server.Client(t), Timeout: patient})
	call := operate.Call{Method: "GET", Path: "/", RemoteAddr: "192.0.2.7", MaxCommands: 100}
	explained := func() operate.Explanation {
		before := countedCommands(server)
		x := explain(t, limiter, call)
		if n := countedCommands(server) - before; n == 0 || n > call.MaxCommands {
			t.Errorf("it took %d commands", n)
		}
		return x
	}
	x := explained()
	if last := x.Rules[len(x.Rules)-1]; x.Reason != "" || len(x.Rules) != 200 || x.Rules[0].Reason != core.Allowed || last.Reason != "" || len(last.Errors) != 1 {
		t.Errorf("of %d rules: %q, the last %+v", len(x.Rules), x.Reason, last)
	}
	ban(t, limiter, "rule-000", "ip:192.0.2.7", time.Hour)
	if x := explained(); x.Reason != core.Banned || x.Rule != "rule-000" {
		t.Errorf("of a banned address: %q by %q", x.Reason, x.Rule)
	}
	call.MaxCommands = 0
	if x := explain(t, limiter, call); x.Rules[199].Reason != core.Allowed {
		t.Errorf("without a bound, the last rule is %+v", x.Rules[199])
	}
}

// Parts of an Inspect follow each other without a gap, and each takes a bounded number of commands.
func TestInspectPart(t *testing.T) {
	server := redistest.Start(t)
	for name, options := range map[string]core.Options{"memory": {}, "redis": {Redis: server.Client(t), Timeout: patient}} {
		t.Run(name, func(t *testing.T) {
			limiter := newCrowded(t, options)
			for _, commands := range []int{1, 60, 1000, 1_000_000} {
				var names []string
				for next, first := "", true; first || next != ""; first = false {
					before := countedCommands(server)
					x, after, err := operate.New(limiter).InspectPart(background, "user:alice", next, commands)
					if n := countedCommands(server) - before; err != nil || len(x.Rules) == 0 || n > max(commands, 40) {
						t.Fatalf("a part of %d rules, %d commands, %v", len(x.Rules), n, err)
					}
					for _, r := range x.Rules {
						names = append(names, r.Name)
					}
					next = after
				}
				for i, name := range names {
					if name != fmt.Sprintf("rule-%03d", i) || len(names) != 200 {
						t.Fatalf("with %d commands, rule %d of %d is %s", commands, i, len(names), name)
					}
				}
			}
		})
	}
}
