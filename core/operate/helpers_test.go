package operate_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

const (
	patient     = limitertest.Patient
	mostPermits = limitertest.MostPermits
)

var (
	background        = context.Background()
	newLimiter        = limitertest.New
	onBothEngines     = limitertest.OnBothEngines
	onEveryDeployment = limitertest.OnEveryDeployment
	deadRedis         = limitertest.DeadRedis
	eventually        = limitertest.Eventually
	isRefused         = limitertest.IsRefused
	awaitDryRuns      = limitertest.AwaitDryRuns
	overridable       = limitertest.Overridable
	newGuard          = limitertest.Guard
	attach            = limitertest.Attach
	ban               = limitertest.Ban
	setOverride       = limitertest.SetOverride
	errorOf           = limitertest.ErrorOf
	ruleOf            = limitertest.RuleOf
	newView           = limitertest.NewView
	whoSays           = limitertest.WhoSays
)

type fakeView = limitertest.View

const me = "ip:192.0.2.1" // who calls in newView

// about returns a call that names a subject in a header.
func about(subject string) *fakeView { return newView("GET", "/").With("Subject", subject) }

// twice allows two calls an hour.
var twice = core.Rule{Name: "n", Seconds: 3600, MaxCount: 2}

// bySubject is a key function that takes the subject from the header of the call.
func bySubject(r core.Request) (string, error) { return r.Header("Subject")[0], nil }

// wantStatus checks the statuses of several calls about a subject.
func wantStatus(t testing.TB, guard *core.Guard, subject string, want ...int) {
	t.Helper()
	var got []int
	for range want {
		answer := guard.Check(about(subject))
		if answer.Refusal != nil {
			got = append(got, answer.Refusal.Status)
			continue
		}
		answer.Run(func() int { return http.StatusOK })
		got = append(got, http.StatusOK)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("calls about %q: %v, want %v", subject, got, want)
	}
}

// partsOf returns the inside of a limiter.
func partsOf(l *core.Limiter) *limiter.Parts { return (*limiter.Limiter[core.Rule])(l).Parts() }

// flushTop adds to the lists of Top what was noted so far.
func flushTop(l *core.Limiter) { partsOf(l).Tops.Flush() }

// per returns an override with these limits.
func per(limits ...core.Limit) operate.Override { return operate.Override{Limits: limits} }

// cost returns a Cost that is always the same.
func cost(n int) func(core.Request) int { return func(core.Request) int { return n } }

var errVerify = errors.New("the session store is down")

// decisions are what OnDecision receives, but for those of rules in DryRun.
type decisions struct{ all []core.Decision }

func (d *decisions) note(_ context.Context, e core.Event) {
	if !e.DryRun {
		d.all = append(d.all, e.Decision)
	}
}

// last returns the newest of exactly n decisions.
func (d *decisions) last(t testing.TB, n int) core.Decision {
	t.Helper()
	if len(d.all) != n {
		t.Fatalf("OnDecision was called %d times, want %d", len(d.all), n)
	}
	return d.all[n-1]
}

// noteSent makes a client call a function with what it has sent.
func noteSent(sent func([]byte)) func(*redis.Options) {
	return func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return notedConn{conn, sent}, err
		}
	}
}

type notedConn struct {
	net.Conn
	sent func([]byte)
}

func (c notedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent(b)
	return n, err
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
