package faults_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// drill is an operator beside a fleet, on a server that fails. The operator's process calls
// too.
type drill struct {
	*operator
	service  *service // of the operator's process
	repairer *redis.Client
	judge    *core.Limiter // sees the server without the wire
	fleet    *fleet
	own      *member

	sum      tally
	late     []time.Duration // how long after its deadline each answer came
	recovery time.Duration   // the longest
	unlisted bool            // bans may be missing in their list
	silent   bool            // nobody asks
	met      map[core.StoreErrorClass]int
}

func newDrill(t *testing.T, server *redistest.Server, w *wire) *drill {
	t.Helper()
	client := server.Client(t, w.over)
	own, err := newMember(client, timeout, func(core.Threshold) {})
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, own.limiter.Close)
	return &drill{
		operator: newOperator(t, own.limiter), service: &service{t: t, server: server, client: client, limiter: own.limiter},
		repairer: server.Client(t, func(o *redis.Options) { o.Username, o.PoolSize = "operator", 1 }),
		judge:    limited(t, server, core.Options{Timeout: patience}).limiter,
		fleet:    newFleet(t, w.proxy.Listen, timeout), own: own,
	}
}

// pass injects a fault, asks and acts meanwhile, repairs it, and judges what happened. It returns
// how long the calls took that all but one of a hundred did not exceed.
func (v *drill) pass(a storeFault) (p99 time.Duration) {
	v.t.Helper()
	v.begin(a.fault, !a.forgets)
	var over atomic.Bool
	var running sync.WaitGroup
	total := new(tally)
	r := round{
		Rules: steered, Subjects: []string{v.of("hot"), v.of("vip"), v.of("blocked"), v.of("banned")},
		Callers: shortOr(1, 4), Pace: 10 * time.Millisecond,
	}
	running.Go(func() { total = v.own.run(r, &over) })
	for _, p := range v.fleet.processes {
		p.begin(r)
	}
	v.runUnder(a)
	over.Store(true)
	running.Wait()
	for _, p := range v.fleet.processes {
		p.begin(round{Stop: true})
	}
	for _, p := range v.fleet.processes {
		total.add(p.result())
	}
	v.wantExact(a, total)
	v.wantKept()
	v.sum.add(total)
	took := waits{all: total.Took}
	return took.percentile(99)
}

// begin begins a phase with subjects of its own: one may call more often than others, one is
// blocked, and one is banned.
func (v *drill) begin(phase string, sure bool) {
	v.t.Helper()
	v.phase, v.sure, v.set, v.mayBeSet, v.banned, v.met = phase, sure, 0, nil, make(map[string]bool), make(map[core.StoreErrorClass]int)
	ctx := context.Background()
	for _, rule := range steered {
		overrides, err := operate.New(v.limiter).Overrides(rule)
		if err != nil {
			v.t.Fatal(err)
		}
		for subject, override := range map[string]operate.Override{"vip": {Max: 1_000_000}, "blocked": {Blocked: true}} {
			soon(v.t, "an override is set", func() bool { return overrides.Set(ctx, v.of(subject), override) == nil })
		}
		soon(v.t, "a subject is banned", func() bool {
			_, err := operate.New(v.limiter).Ban(ctx, rule, v.of("banned"), 24*time.Hour)
			return err == nil
		})
	}
}

// runUnder injects the fault until each question was asked, and repairs it.
func (v *drill) runUnder(a storeFault) {
	v.t.Helper()
	soon(v.t, "all is well", func() bool { return v.askAll(nil) })
	v.unlisted = v.unlisted || slices.Contains(a.classes, core.StoreRefused) // bans are not listed for a minute after a right was missing
	a.inject(v.service, v.repairer)
	begun := time.Now()
	soon(v.t, fmt.Sprint("the illness has been met: ", a.fault), func() bool {
		v.askAll(a.classes)
		met := slices.ContainsFunc(a.classes, func(class core.StoreErrorClass) bool { return v.met[class] > 0 })
		return time.Since(begun) > shortOr(100*time.Millisecond, 2*time.Second) && (met || a.rare || len(a.classes) == 0)
	})
	a.end(v.service, v.repairer)
	recovered := time.Now()
	soon(v.t, fmt.Sprint("all is well again: ", a.fault), func() bool { return v.askAll(a.classes) })
	v.recovery = max(v.recovery, time.Since(recovered))
}

// askAll asks all questions, and reports whether all were answered.
func (v *drill) askAll(classes []core.StoreErrorClass) (well bool) {
	v.t.Helper()
	time.Sleep(shortOr(20*time.Millisecond, 0)) // the short form needs no thousands of answers
	if v.silent {
		return true
	}
	well = true
	for _, q := range questions {
		begin := time.Now()
		wrong, err := q.ask(v.operator, context.Background())
		v.late = append(v.late, time.Since(begin)-timeout)
		failed := new(core.StoreError)
		switch {
		case err == errOnPage:
			well = false
		case errors.As(err, &failed):
			well = false
			v.met[failed.Class]++
			if saidByRedis(failed.Class) && !slices.Contains(classes, failed.Class) {
				v.t.Errorf("%s: %s: the class is %s: %v", v.phase, q.name, failed.Class, err)
			}
		case err != nil:
			v.t.Errorf("%s: %s: %v", v.phase, q.name, err)
		case wrong != nil && v.sure && (q.name != "Bans" || !v.unlisted):
			v.t.Errorf("%s: %s: %v", v.phase, q.name, wrong)
		}
	}
	return well
}

// saidByRedis reports whether a class tells what Redis answered. With the others it did not answer
// in time, which can also happen on a busy machine.
func saidByRedis(class core.StoreErrorClass) bool {
	return class == core.StoreRefused || class == core.StoreNotReady || class == core.StoreForeignValue || class == core.StoreUnexpected
}

// wantExact checks who was let in.
func (v *drill) wantExact(a storeFault, total *tally) {
	v.t.Helper()
	lives := 1
	if a.forgets {
		lives = 2
	}
	for _, rule := range steered {
		hot, vip := total.Places[rule+" "+v.of("hot")], total.Places[rule+" "+v.of("vip")]
		if hot.Told > fleetMost*lives || hot.Refused > 0 && hot.Told+total.Doubtful < fleetMost {
			v.t.Errorf("%s: %s: of %+v, %d were let in, and %d may have been charged", v.phase, rule, *hot, hot.Told, total.Doubtful)
		}
		for _, subject := range []string{"blocked", "banned"} {
			if at := total.Places[rule+" "+v.of(subject)]; at.Told > fleetMost*(lives-1) {
				v.t.Errorf("%s: %s: a %s subject was let in: %+v", v.phase, rule, subject, *at)
			}
		}
		if a.forgets {
			continue
		}
		d, err := v.judge.MustCounter(rule, core.PerDay(1_000_000)).Peek(context.Background(), v.of("vip"))
		if used := d.Limit.Max - d.Remaining; err != nil || vip.Refused > 0 || used < vip.Told || used > vip.Told+total.Doubtful {
			v.t.Errorf("%s: %s: %d were charged (%v) of %+v, and %d may have been", v.phase, rule, used, err, *vip, total.Doubtful)
		}
	}
}

// wantKept checks that what was acknowledged is in force.
func (v *drill) wantKept() {
	v.t.Helper()
	if !v.sure {
		return
	}
	var found operate.Override
	var err error
	ctx := context.Background()
	soon(v.t, "the override can be read", func() bool {
		found, _, err = v.overrides.Get(ctx, v.of("changing"))
		return err == nil
	})
	if found.Max != v.set && !slices.Contains(v.mayBeSet, found.Max) {
		v.t.Errorf("%s: the override is %d, %d was acknowledged, and %v were not", v.phase, found.Max, v.set, v.mayBeSet)
	}
	for subject, banned := range v.banned {
		soon(v.t, "the ban can be read", func() bool {
			_, ok, err := operate.New(v.limiter).BanOf(ctx, "closed", subject)
			if err == nil && ok != banned {
				v.t.Errorf("%s: %s is banned: %t, want %t", v.phase, subject, ok, banned)
			}
			return err == nil
		})
	}
}

// waited returns by how much each call exceeded its deadline.
func (v *drill) waited() []time.Duration {
	late := slices.Clone(v.sum.Took)
	for i := range late {
		late[i] -= timeout
	}
	return late
}
