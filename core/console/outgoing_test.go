package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/internal/extensiontest/metered"
)

// The page shows pauses, and an operator ends them.
func TestAPauseEndsOnThePage(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		turns := metered.GoOut(t, limiter, "github", "acme")
		operator := as(t, "operator", newPage(t, limiter, console.Options{}))
		wantParts(t, operator.wantPage("subject?subject=acme"), "Paused for another 1", ": paused by the server.", "Pauses in a row after refusals by the server: 1.", "End the pause of github")
		operator.send("unban", http.StatusSeeOther, fields("rule", "github", "subject", "acme", "note", "ticket 7"))
		turn, err := turns.Take(t.Context(), "acme")
		if err != nil {
			t.Fatalf("after the pause: %v", err)
		}
		turn.Release()
	})
}

// The first page shows costs that are known afterwards, and calls that go out, if there are any.
func TestNowShowsCostsAndCallsThatGoOut(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	if body := viewer.wantPage(""); strings.Contains(body, "Costs known") || strings.Contains(body, "go out") {
		t.Errorf("the page shows what is not used:\n%s", body)
	}
	metered.GoOut(t, limiter, "github", "acme")
	tokens := limiter.MustCounter("tokens", core.PerHour(10))
	bill, _, err := tokens.Open(t.Context(), "tenant:acme", 4)
	if err == nil {
		err = bill.Settle(t.Context(), 6)
	}
	if err != nil {
		t.Fatal(err)
	}
	wantParts(t, viewer.wantPage(""),
		"Calls that go out", "github 0 1 1 1 1 0", "Costs known afterwards", "tokens 1 4 1 4 6 0 0")
	if got := viewer.get("api/now").body; !strings.Contains(got, `"bills_settled":1,`) || !strings.Contains(got, `"refused_by_server":1,`) {
		t.Error(got)
	}
}

// A subject in debt is shown as such.
func TestTheSubjectPageShowsDebts(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	attach(t, limiter, core.Rule{Name: "tokens", Limit: core.PerHour(10), Key: core.ByUser})
	if _, err := limiter.MustCounter("tokens", core.PerHour(10)).Charge(t.Context(), "user:alice", 15); err != nil {
		t.Fatal(err)
	}
	if _, err := limiter.MustCounter("rows", core.PerHour(4)).Charge(t.Context(), "user:alice", 7); err != nil {
		t.Fatal(err)
	}
	page := as(t, "operator", newPage(t, limiter, console.Options{})).wantPage("subject?subject=user:alice")
	wantParts(t, page, "10/h rule 15 0, 5 in debt 15 of 10", "Reset tokens", "rows a handle", "4/h rule 7 0, 3 in debt 7 of 4", "Made at")
	if text := lines(page); strings.Contains(text, "Reset rows") {
		t.Errorf("only the service's code can reset a handle: %s", text)
	}
}
