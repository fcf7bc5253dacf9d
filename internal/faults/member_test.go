package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// These environment variables make this program a process of a fleet. They hold the address of the
// fleet's Redis, and the Timeout.
const (
	memberOf      = "ACCESSLIMIT_MEMBER_OF"
	memberTimeout = "ACCESSLIMIT_MEMBER_TIMEOUT"
)

// fleetRules are the rules of every process of a fleet. The first three have the three policies.
func fleetRules() []core.Rule {
	var rules []core.Rule
	for i, policy := range []core.StorePolicy{core.FailClosed, core.FailOpen, core.CountLocally(1)} {
		rules = append(rules, ruleFor(steered[i], core.PerDay(fleetMost), policy))
	}
	warned, strict := ruleFor("warned", core.PerDay(fleetMost), core.FailClosed), ruleFor("strict", core.PerDay(1), core.FailClosed)
	warned.Warn, strict.Ban = []float64{0.5, 1}, core.Ban{After: 1, For: time.Hour}
	return append(rules, warned, strict, ruleFor("counted", core.PerDay(1), core.FailClosed))
}

// steered are the names of rules for their policies.
var steered = []string{"closed", "open", "local"}

// fleetMost is the limit of most rules.
const fleetMost = 50

// member is a process of a fleet, or what it runs.
type member struct {
	limiter *core.Limiter
	guards  map[string]*core.Guard // by the names of their rules
	mutex   sync.Mutex
	tally   tally
	before  int // doubtful calls before this tally
}

// tally is what a member has counted since its last one. Its fields are exported for JSON.
type tally struct {
	Places   map[string]*place // by "rule subject"
	Took     []time.Duration   // by each call
	Bare     []time.Duration   // how late bare timers were
	Doubtful int               // calls that failed and may have been charged
	Wrong    string            // an answer that no policy gives
	Leaked   string            // goroutines that are left at the end
}

// place is the calls of one subject under one rule.
type place struct {
	Made    int
	Told    int // let in by Redis
	Refused int // by Redis, or by a process that remembers it
	Lenient int // let in by the rule's policy
}

// round is what a member has to do.
type round struct {
	Rules, Subjects []string
	Callers         int
	Pace            time.Duration
	Times           int  // how often each caller calls; 0 means until Stop
	Stop            bool // ends the round before
}

// told is a message of a member: the end of a round, or a threshold that was reported.
type told struct {
	Tally     *tally
	Threshold string
}

func newMember(client redis.UniversalClient, within time.Duration, heed func(core.Threshold)) (m *member, err error) {
	m = &member{guards: make(map[string]*core.Guard)}
	m.limiter, err = core.New(core.Options{
		Redis: client, Timeout: within, Logger: slog.New(slog.DiscardHandler),
		OnDecision:  leaveDecision,
		OnThreshold: func(_ context.Context, t core.Threshold) { heed(t) },
	})
	if err != nil {
		return nil, err
	}
	for _, rule := range fleetRules() {
		rule.Key = byCaller
		m.guards[rule.Name] = m.limiter.MustGuard(rule)
	}
	return m, nil
}

// run makes the calls of a round, and returns what was counted.
func (m *member) run(r round, over *atomic.Bool) *tally {
	var timers sync.WaitGroup
	var ended atomic.Bool
	timers.Go(func() {
		late := bareTimers(&ended)
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.tally.Bare = append(m.tally.Bare, late...)
	})
	together(r.Callers, func(int) {
		for n := 0; (r.Times == 0 || n < r.Times) && !over.Load(); n++ {
			for _, subject := range r.Subjects {
				for _, rule := range r.Rules {
					m.call(rule, subject)
				}
			}
			time.Sleep(r.Pace)
		}
	})
	ended.Store(true)
	timers.Wait()
	return m.take()
}

// call makes one call.
func (m *member) call(rule, subject string) {
	var d core.Decision
	begin := time.Now()
	m.guards[rule].Check(visit(context.WithValue(context.Background(), decisionKey{}, &d), subject))
	took := time.Since(begin)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.tally.Places == nil {
		m.tally.Places = make(map[string]*place)
	}
	at := m.tally.Places[rule+" "+subject]
	if at == nil {
		at = new(place)
		m.tally.Places[rule+" "+subject] = at
	}
	m.tally.Took = append(m.tally.Took, took)
	if !at.count(rule, d) {
		m.tally.Wrong = fmt.Sprintf("%s of %s: %+v", rule, subject, d)
	}
}

// count counts a decision, and reports whether Redis or the rule's policy may decide so.
func (p *place) count(rule string, d core.Decision) bool {
	p.Made++
	switch {
	case d.Allowed && d.Source == core.FromRedis:
		p.Told++
	case rule == "open" && d.Reason == core.StoreFailOpen, rule == "local" && d.Allowed && d.Source == core.FromLocal:
		p.Lenient++
	case rule == "local" && d.Source == core.FromLocal:
	case d.Reason == core.LimitExceeded, d.Reason == core.Blocked, d.Reason == core.Banned:
		p.Refused++
	default:
		return rule != "open" && rule != "local" && d.Reason == core.StoreFailClosed
	}
	return true
}

// take returns what was counted since the last time.
func (m *member) take() *tally {
	doubtful := 0
	for class, count := range m.limiter.Stats().StoreErrors {
		if class.MayHaveCharged() {
			doubtful += int(count)
		}
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	taken := m.tally
	taken.Doubtful, m.before, m.tally = doubtful-m.before, doubtful, tally{}
	return &taken
}

// beMember is the program of a process of a fleet. It ends when its input ends.
func beMember(addr string) error {
	within, err := time.ParseDuration(os.Getenv(memberTimeout))
	if err != nil {
		return err
	}
	before, client := goleak.IgnoreCurrent(), redis.NewClient(&redis.Options{Addr: addr})
	var speaking sync.Mutex
	say := func(what told) {
		speaking.Lock()
		defer speaking.Unlock()
		_ = json.NewEncoder(os.Stdout).Encode(what)
	}
	m, err := newMember(client, within, func(t core.Threshold) { say(told{Threshold: fmt.Sprint(t.Rule, " ", t.Key, " ", t.Fraction)}) })
	if err != nil {
		return err
	}
	var over atomic.Bool
	var running sync.WaitGroup
	for orders := json.NewDecoder(os.Stdin); ; {
		var r round
		if err := orders.Decode(&r); err != nil {
			break
		}
		over.Store(r.Stop)
		running.Wait()
		if !r.Stop {
			running.Go(func() { say(told{Tally: m.run(r, &over)}) })
		}
	}
	over.Store(true)
	running.Wait()
	m.limiter.Close()
	_ = client.Close()
	last := m.take()
	if err := goleak.Find(before); err != nil {
		last.Leaked = err.Error()
	}
	say(told{Tally: last})
	return nil
}

// visit returns a call of a subject, which is in a header.
func visit(ctx context.Context, subject string) *limitertest.View {
	return limitertest.NewView("GET", "/").In(ctx).With(callerHeader, subject)
}

// callerHeader is the header with the subject of a visit.
const callerHeader = "X-Caller"

// byCaller is a Key for rules that count visits by their subjects.
func byCaller(r core.Request) (string, error) { return r.Header(callerHeader)[0], nil }
