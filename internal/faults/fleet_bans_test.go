package faults_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const bansFault = "redis-server stands still (SIGSTOP), is killed (-9) and restarted empty, while subjects are banned and blocked from three processes"

// While Redis does not answer, a ban and a block that an operator imposed in one process hold in all
// that have met them, under every policy. The first answer of an empty Redis ends them.
func TestBansOutlastAnOutage(t *testing.T) {
	refused := 0
	for range shortOr(1, 15) {
		server := redistest.Start(t)
		o := &operation{t: t, fleet: newFleet(t, server.Addr(), time.Second)}
		o.banAndBlock(limited(t, server, core.Options{Timeout: patience}).limiter)
		soon(t, "all processes refuse", func() bool { return o.callAll("banned", "blocked").Refused == o.made })
		server.Stop()
		o.wantAllRefused("SIGSTOP")
		server.Continue()
		o.awaitRedis()
		server.Kill()
		o.wantAllRefused("SIGKILL")
		if others := o.callAll("somebody"); others.Lenient == 0 || others.Told > 0 || others.Refused > 0 {
			t.Errorf("others got %+v, want what the policies say", others)
		}
		server.Restart()
		o.awaitRedis()
		if lost := o.callAll("banned", "blocked"); lost.Told != lost.Made {
			t.Errorf("the empty Redis decided %+v, want all calls let in", lost)
		}
		server.Kill()
		if again := o.callAll("banned", "blocked"); again.Refused > 0 || again.Lenient == 0 {
			t.Errorf("after the bans were lost, calls got %+v", again)
		}
		o.fleet.end()
		refused += o.refused
	}
	report(t, bansFault, "%d calls of banned and blocked subjects without Redis, all refused; none after the empty Redis had answered", refused)
}

// operation makes the processes of a fleet call, and notes how many calls they made.
type operation struct {
	t             *testing.T
	fleet         *fleet
	made, refused int
	others        int // subjects that are neither banned nor blocked
}

// banAndBlock bans one subject from each rule, and blocks another one.
func (o *operation) banAndBlock(operator *core.Limiter) {
	o.t.Helper()
	for _, rule := range fleetRules() {
		if !rule.Overrides {
			continue
		}
		rule.Key = byCaller
		operator.MustGuard(rule)
		overrides, err := operate.New(operator).Overrides(rule.Name)
		if err == nil {
			err = overrides.Set(context.Background(), "blocked", operate.Override{Blocked: true})
		}
		if err == nil {
			_, err = operate.New(operator).Ban(context.Background(), rule.Name, "banned", time.Hour)
		}
		if err != nil {
			o.t.Fatal(err)
		}
	}
}

// callAll lets each process make a few calls of each subject by each policy, and returns what they got.
func (o *operation) callAll(subjects ...string) (sum place) {
	o.t.Helper()
	for _, p := range o.fleet.processes {
		p.begin(round{Rules: steered, Subjects: subjects, Callers: 2, Times: 2})
	}
	for _, p := range o.fleet.processes {
		for _, got := range p.result().Places {
			sum.Made, sum.Told, sum.Refused, sum.Lenient = sum.Made+got.Made, sum.Told+got.Told, sum.Refused+got.Refused, sum.Lenient+got.Lenient
		}
	}
	o.made = sum.Made
	return sum
}

// awaitRedis waits until Redis answers each process about a subject that may pass.
func (o *operation) awaitRedis() {
	o.t.Helper()
	soon(o.t, "Redis answers all processes", func() bool {
		o.others++
		return o.callAll(fmt.Sprint("somebody", o.others)).Told == o.made
	})
}

func (o *operation) wantAllRefused(fault string) {
	o.t.Helper()
	got := o.callAll("banned", "blocked")
	if got.Refused != got.Made {
		o.t.Errorf("%s: %+v, want all calls refused", fault, got)
	}
	o.refused += got.Made
}
