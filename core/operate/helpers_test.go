package operate_test

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
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
	noMax             = limitertest.NoMax
	overridable       = limitertest.Overridable
)

// byHand bans the subjects that operators name.
var byHand = core.Rule{Name: "n", Seconds: 3600, MaxCount: 2, Ban: core.Ban{ByHand: true}}

func newGuard(t testing.TB, limiter *core.Limiter, rules ...core.Rule) *core.Guard {
	t.Helper()
	guard, err := limiter.Guard(rules...)
	if err != nil {
		t.Fatalf("Guard: %v", err)
	}
	return guard
}

// call is a call from 192.0.2.1 that has what the rules of these tests read.
type call struct {
	adapter.View
	request, response http.Header
}

// about returns a call that names a subject in a header.
func about(subject string) call {
	return call{request: http.Header{"Subject": {subject}}, response: http.Header{}}
}

func (c call) Context() context.Context             { return background }
func (c call) Method() string                       { return "GET" }
func (c call) Path() string                         { return "/" }
func (c call) Route() string                        { return "/" }
func (c call) RemoteAddr() netip.Addr               { return netip.MustParseAddr("192.0.2.1") }
func (c call) Header(name string) []string          { return c.request[name] }
func (c call) ResponseHeader() adapter.HeaderWriter { return c.response }

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

// errorOf returns the error of a call that also reports whether it changed anything.
func errorOf(_ bool, err error) error { return err }
