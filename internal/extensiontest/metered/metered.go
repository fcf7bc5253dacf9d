// Package metered does what metrics and the operator's page show: it opens bills, exceeds a debt, tries
// a rule, and makes calls that go out.
package metered

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// Spend opens two bills of the counter "tokens" at 4 permits each, settles one at 6, and charges a
// cost of which 5 permits exceed the bound of the debt.
func Spend(t testing.TB, limiter *core.Limiter, subject string) {
	t.Helper()
	ctx, tokens := context.Background(), limiter.MustCounter("tokens", core.PerHour(10))
	bill, _, err := tokens.Open(ctx, subject, 4)
	if err == nil {
		_, _, err = tokens.Open(ctx, subject, 4)
	}
	if err == nil {
		err = bill.Settle(ctx, 6)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Charge(ctx, subject, 15); !errors.Is(err, core.ErrDebtExceeded) {
		t.Fatalf("Charge: %v", err)
	}
}

// Try makes three calls by the rule "tried" in DryRun, which would have refused two. A rule in force
// refuses one of these.
func Try(limiter *core.Limiter) {
	tried := core.Rule{Name: "tried", Limit: core.PerHour(1), Mode: core.DryRun}
	service := nethttplimit.New(limiter, tried, core.Rule{Name: "beside", Limit: core.PerHour(2)})(http.NotFoundHandler())
	for range 3 {
		service.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
}

// GoOut makes a call to a host by a rule, which the server refuses for an hour, and another one, which
// is not sent. It returns the turns of the rule.
func GoOut(t testing.TB, limiter *core.Limiter, rule, host string) *outgoing.Turns {
	t.Helper()
	turns, err := outgoing.New(limiter, outgoing.Rule{Name: rule, Limit: core.PerHour(1000).Bucket(10)})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := turns.Take(context.Background(), host)
	if err != nil {
		t.Fatal(err)
	}
	turn.Answered(outgoing.Answer{Refused: true, Wait: time.Hour})
	turn.Release()
	var wait *outgoing.WaitError
	if _, err := turns.Take(context.Background(), host); !errors.As(err, &wait) || !wait.Paused {
		t.Fatalf("Take: %v", err)
	}
	return turns
}
