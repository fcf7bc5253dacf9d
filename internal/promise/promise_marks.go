package promise

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// MarksHold: a block, a ban or an override holds in its process at once, and in others soon. Refusals by
// marks need no server, so they change nothing there, and outlast a failure. If the servers lose their
// memory, the processes that know the marks write them back. A removal holds as an act does. What the
// servers hold of marks lives for a day longer than the last of them; a removal is kept for a day.
func MarksHold(t *testing.T, e Engine) {
	options := e.Options(t)
	acting := e.newMarked(t, options)
	acting.act()
	if e.inProcess() {
		acting.wantAll()
		acting.remove()
		acting.wantNone()
		return
	}
	other := e.newMarked(t, options)
	acting.wantAll()
	other.awaitAll()
	servers := e.clients(t)
	wantMarks(t, servers, options.Prefix, func(left time.Duration) bool { return left == -1 })
	before, err := keysOf(servers, options.Prefix)
	for _, server := range e.Servers {
		server.Stop()
		t.Cleanup(server.Continue)
	}
	acting.wantRefusals()
	other.wantRefusals()
	for _, server := range e.Servers {
		server.Continue()
	}
	after, err2 := keysOf(servers, options.Prefix)
	if firstOf(err, err2) != nil || !maps.Equal(before, after) {
		t.Errorf("refusals changed %v to %v; %v, %v", before, after, err, err2)
	}
	for _, server := range servers {
		if err := server.FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	third := e.newMarked(t, options)
	third.awaitAll()
	acting.remove()
	other.awaitNone()
	third.awaitNone()
	wantMarks(t, servers, options.Prefix, func(left time.Duration) bool { return left > 47*time.Hour && left < 49*time.Hour })
}

// wantMarks checks how much longer the servers keep the marks.
func wantMarks(t *testing.T, servers []*redis.Client, prefix string, right func(left time.Duration) bool) {
	t.Helper()
	found := 0
	for _, server := range servers {
		for _, key := range server.Keys(context.Background(), prefix+":{%marks}:m[hc]1").Val() {
			found++
			if left := server.PTTL(context.Background(), key).Val(); !right(left) {
				t.Errorf("%s is kept for %v", key, left)
			}
		}
	}
	if found != 2 {
		t.Errorf("the servers have %d keys with marks, want 2", found)
	}
}

// marked is a process with one rule, for subjects that acts mark.
type marked struct {
	*testing.T
	operator *operate.Operator
	guard    *core.Guard
}

func (e Engine) newMarked(t *testing.T, options core.Options) *marked {
	if !e.inProcess() {
		options.Redis = e.connect(t, nil, 0)
	}
	limiter := newLimiter(t, options)
	m := &marked{t, operate.New(limiter), limiter.MustGuard(ruleOf("name", core.PerDay(1_000_000)))}
	if _, _, err := m.operator.Bans(context.Background(), "name", "", 1); err != nil { // it has read all marks now
		t.Fatal(err)
	}
	return m
}

const markedNetwork = "ip:203.0.113.0/24"

func (m *marked) act() {
	ctx := context.Background()
	overrides, err := m.operator.Overrides("name")
	_, err2 := m.operator.Ban(ctx, "name", subjectOf("banned"), time.Hour)
	if err := firstOf(
		err, err2,
		overrides.Set(ctx, subjectOf("blocked"), operate.Override{Blocked: true}),
		overrides.Set(ctx, markedNetwork, operate.Override{Blocked: true}),
		overrides.Set(ctx, subjectOf("limited"), operate.Override{Limits: []core.Limit{core.PerDay(7)}}),
	); err != nil {
		m.Fatal(err)
	}
}

func (m *marked) remove() {
	ctx := context.Background()
	overrides, err := m.operator.Overrides("name")
	_, err2 := m.operator.Unban(ctx, "name", subjectOf("banned"))
	for _, subject := range []string{subjectOf("blocked"), markedNetwork, subjectOf("limited")} {
		_, removed := overrides.Remove(ctx, subject)
		err = firstOf(err, removed)
	}
	if err := firstOf(err, err2); err != nil {
		m.Fatal(err)
	}
}

// reasons returns why callers are refused, or that they are not.
func (m *marked) reasons() string {
	network := m.guard.Check(callBy(context.Background(), "somebody").From("203.0.113.7"))
	return fmt.Sprint(m.reason("blocked"), " ", m.reason("banned"), " ", reasonOf(network))
}

func (m *marked) reason(who string) core.Reason {
	return reasonOf(m.guard.Check(callBy(context.Background(), who)))
}

func reasonOf(answer core.Answer) core.Reason {
	if answer.Refusal == nil {
		return core.Allowed
	}
	return answer.Refusal.Decision.Reason
}

const (
	allRefused  = "blocked banned blocked"
	noneRefused = "allowed allowed allowed"
)

// limit returns the limit of the subject with an override.
func (m *marked) limit() int {
	v := callBy(context.Background(), "limited")
	own := m.guard.OwnLimits(v)
	if len(own.Limits) != 1 {
		m.Fatalf("%+v", own)
	}
	return own.Limits[0].Limit.Max
}

func (m *marked) wantRefusals() {
	m.Helper()
	if got := m.reasons(); got != allRefused {
		m.Errorf("the marked are %s, want %s", got, allRefused)
	}
}

func (m *marked) wantAll() {
	m.Helper()
	m.wantRefusals()
	if m.limit() != 7 {
		m.Error("an override does not hold")
	}
}

func (m *marked) wantNone() {
	m.Helper()
	if got := m.reasons(); got != noneRefused || m.limit() != 1_000_000 {
		m.Errorf("after the removal, the marked are %s", got)
	}
}

func (m *marked) awaitAll() {
	m.Helper()
	limitertest.Eventually(m, "all marks hold", func() bool { return m.reasons() == allRefused && m.limit() == 7 })
}

func (m *marked) awaitNone() {
	m.Helper()
	limitertest.Eventually(m, "no mark holds", func() bool { return m.reasons() == noneRefused && m.limit() == 1_000_000 })
}
