package rulefile

import (
	"runtime"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// A program for operators shows the rules of a file with their places, and leaves no trace in the
// audit, as a service that begins to use them does.
func TestAttach(t *testing.T) {
	const rules = "name: api, limit: 100/s, plan: p, plans: {pro: 200/s}"
	functions, _ := StandIns(FunctionUse{Field: "plan", Name: "p"})
	checked, err := checkRules(t, Service{Functions: &functions}, rules, "name: b, limit: 5/m")
	if err != nil {
		t.Fatal(err)
	}
	limiter := newLimiter(t)
	guard, err := checked.Attach(limiter)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.KeepAlive(guard)
	attached, _, err := operate.New(limiter).Rules()
	if err != nil || len(attached) != 2 || attached[1].Place != "limits.yaml:4:5" {
		t.Errorf("%+v, %v", attached, err)
	}
	if entries, err := operate.New(limiter).Audit(t.Context(), "", 10); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestAttachRefuses(t *testing.T) {
	guessed, _ := checkRules(t, Service{}, "name: api, limit: 100/s, cost: rows")
	taken, _ := checkRules(t, Service{}, "name: taken, limit: 100/s")
	login, _ := checkRules(t, Service{}, "name: api, limit: 1/s, need_login: true")
	limiter, err := core.New(core.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	defer runtime.KeepAlive(limiter.MustGuard(core.Rule{Name: "taken", Seconds: 1}))
	for want, checked := range map[string]*Checked{"given Service.Functions": guessed, `rule "taken"`: taken, "limits.yaml:3:5": login} {
		if _, err := checked.Attach(limiter); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
