package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// outage is a deployment of Redis that a test ends.
type outage struct {
	connect func(t *testing.T) redis.UniversalClient
	servers []*redistest.Server
}

func (o *outage) begin() {
	for _, server := range o.servers {
		server.Kill()
	}
}

// onEveryOutage runs a test on each deployment of Redis.
func onEveryOutage(t *testing.T, test func(t *testing.T, o *outage)) {
	t.Run("redis", func(t *testing.T) { test(t, oneServer(t)) })
	t.Run("ring", func(t *testing.T) {
		ring := redistest.StartRing(t, 2)
		test(t, &outage{func(t *testing.T) redis.UniversalClient {
			return ring.Client(t, func(o *redis.RingOptions) { o.DialerRetries = 1 })
		}, ring.Nodes()})
	})
	t.Run("cluster", func(t *testing.T) {
		cluster := redistest.StartCluster(t)
		test(t, &outage{func(t *testing.T) redis.UniversalClient {
			return cluster.Client(t, func(o *redis.ClusterOptions) { o.DialerRetries = 1 })
		}, cluster.Nodes()})
	})
}

func oneServer(t *testing.T) *outage {
	server := redistest.Start(t)
	return &outage{func(t *testing.T) redis.UniversalClient {
		return server.Client(t, func(o *redis.Options) { o.DialerRetries = 1 })
	}, []*redistest.Server{server}}
}

var closed = core.Rule{Name: "closed", Seconds: 3600, OnStoreError: core.FailClosed}

func TestAStoreThatFailsIsLoggedOnce(t *testing.T) {
	var log logtest.Log
	options := deadRedis(t)
	options.Logger = log.Logger()
	guard := newGuard(t, newLimiter(t, options), closed)
	for range 3 {
		wantStatus(t, guard, newView("GET", "/"), 503)
	}
	if log.Count("level=WARN", "rule=closed", "policy=fail_closed", "error=") != 1 || log.Count("the store does not answer") != 1 {
		t.Errorf("want one line with rule, policy and cause, got: %s", log.String())
	}
}

// A context that ends while the store is asked is an end of the caller's context, too.
func TestDirectCallsWhoseCallerLeaves(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	core.UseAnswers(limiter, algorithm.Verdict{Ended: context.Canceled})
	if d, err := limiter.MustCounter("n", core.PerHour(5)).Allow(background, "s"); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

// A ban or a block that a process imposed, met in an answer or read from the lists holds while Redis
// does not answer, under every policy. Nobody else is refused for it.
func TestBansOutlastAnOutage(t *testing.T) {
	onEveryOutage(t, func(t *testing.T, o *outage) {
		ordered, met, read := newBanningProcess(t, o), newBanningProcess(t, o), newBanningProcess(t, o)
		ordered.imposeAll(t)
		met.wantRefused(t, "with Redis")
		if err := core.ReadBanLists(read.limiter); err != nil {
			t.Fatal(err)
		}
		o.begin()
		for who, p := range map[string]*banningProcess{"ordered": ordered, "met": met, "read": read} {
			p.wantRefused(t, who)
			p.wantPolicies(t, "somebody")
		}
	})
}

// A Redis that lost its memory has lost the bans. Its first answer ends them, in the next outage too.
func TestALostBanEndsWithTheFirstAnswer(t *testing.T) {
	o := oneServer(t)
	p := newBanningProcess(t, o)
	p.imposeAll(t)
	o.begin()
	p.wantRefused(t, "in the outage")
	o.servers[0].Restart()
	eventually(t, "Redis answers", func() bool {
		_, err := p.limiter.MustCounter("other", core.PerHour(1000)).Allow(background, "s")
		return err == nil
	})
	for subject := range imposed {
		for _, rule := range []string{"open", "closed", "local"} {
			if got, d := p.call(rule, subject); got != 200 || d.Source != core.FromRedis {
				t.Errorf("%s by %s: %d, %+v, want it allowed by the empty Redis", subject, rule, got, d)
			}
		}
	}
	o.begin()
	for subject := range imposed {
		p.wantPolicies(t, subject)
	}
}

// A ban that another process lifted is forgotten by reading, and one that this process lifted at once.
func TestLiftedBansAreForgotten(t *testing.T) {
	o := oneServer(t)
	lifting, reading := newBanningProcess(t, o), newBanningProcess(t, o)
	lifting.imposeAll(t)
	for range 2 {
		if err := core.ReadBanLists(reading.limiter); err != nil {
			t.Fatal(err)
		}
		for _, rule := range []string{"open", "closed", "local"} {
			overrides, err := operate.New(lifting.limiter).Overrides(rule)
			err = errors.Join(err, errorOf(operate.New(lifting.limiter).Unban(background, rule, "banned")),
				errorOf(overrides.Remove(background, "blocked")), overrides.Set(background, "outcast", operate.Override{Max: 5}))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	o.begin()
	for subject := range imposed {
		lifting.wantPolicies(t, subject)
		reading.wantPolicies(t, subject)
	}
}

// Lifting a ban or a block in an outage fails with an error that says who still refuses. The ban
// still holds.
func TestLiftingInAnOutageSaysWhoRefuses(t *testing.T) {
	o := oneServer(t)
	knowing, other := newBanningProcess(t, o), newBanningProcess(t, o)
	knowing.imposeAll(t)
	o.begin()
	for who, p := range map[string]*banningProcess{"this process, and each other one that knows it, refuses": knowing, "each process that knows it refuses": other} {
		overrides, err := operate.New(p.limiter).Overrides("open")
		if err != nil {
			t.Fatal(err)
		}
		for subject, err := range map[string]error{
			"banned":  errorOf(operate.New(p.limiter).Unban(background, "open", "banned")),
			"blocked": errorOf(overrides.Remove(background, "blocked")),
			"outcast": overrides.Set(background, "outcast", operate.Override{Unlimited: true}),
		} {
			var failed *core.StoreError
			if !errors.As(err, &failed) || !errors.Is(err, core.ErrStore) || !strings.Contains(err.Error(), who+" "+subject+" until Redis answers without it") {
				t.Errorf("%v, want an error that says %q", err, who)
			}
		}
	}
	if _, err := operate.New(knowing.limiter).Unban(background, "open", "somebody"); err == nil || strings.Contains(err.Error(), "this process") {
		t.Errorf("%v says that this process refuses somebody", err)
	}
	knowing.wantRefused(t, "after all")
}

// Handles obey blocks in an outage, whatever their policy. All of their methods do.
func TestHandlesObeyBlocksInAnOutage(t *testing.T) {
	onEveryOutage(t, func(t *testing.T, o *outage) {
		limiter := newLimiter(t, core.Options{Redis: o.connect(t), Timeout: patient})
		limit, bucket := core.PerHour(50), core.PerHour(50).Bucket(5)
		counter, pacer := limiter.MustCounter("n", limit).WithOverrides(), limiter.MustPacer("p", bucket).WithOverrides()
		for _, name := range []string{"n", "p"} {
			setOverride(t, limiter, name, "blocked", operate.Override{Blocked: true})
		}
		o.begin()
		for _, policy := range []core.StorePolicy{{}, core.FailOpen, core.FailClosed, core.CountLocally(0.5)} {
			counter, pacer := counter.WithStorePolicy(policy), pacer.WithStorePolicy(policy)
			for what, ask := range map[string]func(string) (core.Decision, error){
				"Allow":   func(s string) (core.Decision, error) { return counter.Allow(background, s) },
				"Peek":    func(s string) (core.Decision, error) { return counter.Peek(background, s) },
				"Reserve": func(s string) (core.Decision, error) { return pacer.Reserve(background, s, 1) },
				"AllowUpTo": func(s string) (core.Decision, error) {
					granted, d, err := counter.AllowUpTo(background, s, 3)
					if s == "blocked" && granted != 0 {
						t.Errorf("%d were granted to a blocked subject", granted)
					}
					return d, err
				},
			} {
				if d, err := ask("blocked"); err != nil || d.Allowed || d.Reason != core.Blocked {
					t.Errorf("%s with the policy %q: %+v, %v", what, policy, d, err)
				}
				if d, err := ask("somebody"); d.Reason == core.Blocked || (policy == core.StorePolicy{}) != errors.Is(err, core.ErrStore) {
					t.Errorf("%s with the policy %q: %+v, %v for somebody else", what, policy, d, err)
				}
			}
		}
	})
}

// If one of several shards is down, the ban and the block of a subject there hold, and what the others charged is
// given back.
func TestABanOnAShardThatIsDown(t *testing.T) {
	ring := redistest.StartRing(t, 2)
	client := ring.Client(t, func(o *redis.RingOptions) { o.HeartbeatFrequency = time.Hour }) // it does not rehash
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	banned, shared := subjectOn(t, ring.Nodes()[0], limiter, "banned"), subjectOn(t, ring.Nodes()[1], limiter, "shared")
	guard := newGuard(t, limiter,
		core.Rule{Name: "n", Limit: core.PerHour(50), Ban: core.Ban{ByHand: true}, Key: key(banned)},
		core.Rule{Name: "shared", Limit: core.PerHour(50), Key: key(shared)})
	ban(t, limiter, "n", banned, time.Hour)
	costly := newGuard(t, limiter,
		core.Rule{Name: "costly", Limit: core.PerHour(1), Key: key(shared), Cost: cost(2)},
		core.Rule{Name: "blocked", Limit: core.PerHour(50), Key: key(banned), Overrides: true})
	setOverride(t, limiter, "blocked", banned, operate.Override{Blocked: true})
	ring.Nodes()[0].Kill()
	if d := wantStatus(t, costly, newView("GET", "/"), 429).Refusal.Decision; d.Reason != core.Blocked { // before the cost
		t.Errorf("%+v", d)
	}
	for range 60 {
		wantStatus(t, guard, newView("GET", "/"), 429)
	}
	eventually(t, "all charges are given back", func() bool {
		d, err := limiter.MustCounter("shared", core.PerHour(50)).Peek(background, shared)
		return err == nil && d.Remaining == 50
	})
}

// subjectOn returns a subject whose counters lie on a server.
func subjectOn(t *testing.T, server *redistest.Server, limiter *core.Limiter, prefix string) (subject string) {
	t.Helper()
	client := server.Client(t)
	for i := range 1000 {
		subject = fmt.Sprint(prefix, i)
		charge(t, limiter, "where", subject, core.PerHour(5), 1)
		if client.Exists(background, core.CounterKey("accesslimit", subject, "where", core.PerHour(5))).Val() == 1 {
			return subject
		}
	}
	t.Fatal("no subject lies on the server")
	return ""
}
