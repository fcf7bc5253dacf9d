package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
)

// A ban from a rule that this process does not have is set, because another process may have the
// rule. The reply says that it may be a misspelling.
func TestHintsAfterActs(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	attach(t, limiter, steered)
	operator := as(t, "operator", newPage(t, limiter, console.Options{}))
	for _, c := range []struct{ rule, subject, hint string }{
		{"api", "user:bob", ""},
		{"api", "bob", "Rules count users as user:alice"},
		{"api", "header:X-Tenant:acme", "as header:x-tenant:" + core.Digest("acme")},
		{"apii", "user:bob", "No rule of this process has this name"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/limits/api/ban", strings.NewReader(
			`{"rule": "`+c.rule+`", "subject": "`+c.subject+`", "for": "1h", "note": "ticket 7"}`))
		r.Header.Set("Content-Type", "application/json")
		got := operator.do(r)
		if says := strings.Contains(got.body, `"hint"`); got.StatusCode != 200 || says != (c.hint != "") || !strings.Contains(got.body, c.hint) {
			t.Errorf("%+v: status %d: %s", c, got.StatusCode, got.body)
		}
	}
	got := operator.send("ban", http.StatusSeeOther, fields("rule", "apiii", "subject", "user:bob", "for", "1h", "note", "ticket 7"))
	body := operator.afterRedirect(got.Header.Get("Location"))
	if !strings.Contains(body, "The ban is set. No rule of this process has this name") {
		t.Errorf("the page does not say that the rule is not known:\n%s", body)
	}
}

// A ban or an override of a subject that the rule never counts is refused, and the form offers only
// rules that count such subjects. Acts that undo something are carried out.
func TestActsThatMeetNobody(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	hold := core.Rule{Limit: core.PerHour(100)}
	addresses, hosts := hold, hold
	addresses.Name, hosts.Name, hosts.Key = "addresses", "hosts", core.ByHost
	attach(t, limiter, addresses, hosts)
	operator := as(t, "operator", newPage(t, limiter, console.Options{}))
	const why = "Rule &#34;addresses&#34; counts by ip, so it never meets the subject &#34;host:shop.test&#34;."
	for _, act := range []string{"ban", "override"} {
		got := operator.send(act, http.StatusBadRequest, fields("rule", "addresses", "subject", "host:shop.test", "for", "1h", "limits", "9/h", "note", "ticket 7"))
		if !strings.Contains(got.body, why) {
			t.Errorf("%s: the page does not say why: %s", act, got.body)
		}
		operator.send(act, http.StatusSeeOther, fields("rule", "hosts", "subject", "host:shop.test", "for", "1h", "limits", "9/h", "note", "ticket 7"))
	}
	for _, act := range []string{"unban", "reset", "remove-override"} {
		operator.send(act, http.StatusSeeOther, fields("rule", "addresses", "subject", "host:shop.test", "note", "ticket 7"))
	}
	body := operator.wantPage("subject?subject=host:shop.test")
	if want := `<datalist id="rules-that-count"><option value="hosts"></option></datalist>`; !strings.Contains(body, want) {
		t.Errorf("the page lacks %s:\n%s", want, body)
	}
	for _, form := range []string{"ban", "override"} {
		if want := `id="` + form + `-rule" name="rule" list="rules-that-count" value="hosts"`; !strings.Contains(body, want) {
			t.Errorf("the page lacks %s:\n%s", want, body)
		}
	}
}

// A subject that no rule has counted, and a rule that this process does not have, may be misspelled: the page
// says so. A subject that a Key has made is right.
func TestHints(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	tenants := attach(t, limiter, core.Rule{Name: "tenants", Seconds: 3600, Key: func(core.Request) (string, error) { return "acme", nil }})
	tenants.Check(callOf("GET", "/"))
	attach(t, limiter, steered, core.Rule{Name: "plain", Seconds: 1})
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	for path, want := range map[string]string{
		"subject?subject=bob":      "Rules count users as user:alice, and addresses as ip:203.0.113.7",
		"subject?subject=acme":     "",
		"subject?subject=user:bob": "",
		"offenders?rule=apii":      "No rule of this process has this name",
		"offenders?rule=plain":     "",
		"offenders":                "",
		"bans?rule=apii":           "No rule of this process has this name",
		"bans?rule=plain":          "",
		"bans?rule=api":            "",
		"bans":                     "",
	} {
		var got struct{ Hint string }
		viewer.json("api/"+path, &got)
		if !strings.HasPrefix(got.Hint, want) || want == "" && got.Hint != "" {
			t.Errorf("%s: the hint is %q, want %q", path, got.Hint, want)
		}
		if body := viewer.wantPage(path); !strings.Contains(body, want) {
			t.Errorf("%s: the page does not say %q", path, want)
		}
	}
}

// The rule of a list is chosen from those that this process has, and that of the URL.
func TestRulesToChooseFrom(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	if body := viewer.wantPage("bans"); !strings.Contains(body, `<input id="rule" name="rule"`) {
		t.Errorf("without rules, a name cannot be typed: %s", body)
	}
	attach(t, limiter, steered, core.Rule{Name: `<b>"`, Limit: core.PerHour(1)})
	const all, escaped = `<select id="rule" name="rule"><option value="">all rules</option>`, `<option value="&lt;b&gt;&#34;">&lt;b&gt;&#34;</option>`
	for _, list := range []string{"offenders", "bans"} {
		for query, want := range map[string]string{
			"": all + escaped, "?rule=api": all + escaped + `<option value="api" selected>api</option></select>`,
			"?rule=remote": all + `<option value="remote" selected>remote</option>`,
		} {
			if body := viewer.wantPage(list + query); !strings.Contains(body, want) {
				t.Errorf("%s lacks %s:\n%s", list+query, want, body)
			}
		}
	}
}

// The subjects that rules in DryRun or Soft would have refused are in a list of their own,
// because nobody refused them.
func TestOffendersOfLenientRules(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	guard := attach(t, limiter,
		core.Rule{Name: "trial", Limit: core.PerHour(1), Mode: core.DryRun},
		core.Rule{Name: "soft", Limit: core.PerHour(1), Mode: core.Soft},
		core.Rule{Name: "hard", Limit: core.PerHour(2)},
		core.Rule{Name: "mixed", Limit: core.PerHour(3)})
	trial := attach(t, limiter, core.Rule{Name: "mixed", Limit: core.PerHour(3), Mode: core.DryRun})
	for range 4 {
		guard.Check(callOf("GET", "/"))
		trial.Check(callOf("GET", "/"))
	}
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	body := viewer.wantPage("offenders")
	refused, would, _ := strings.Cut(body, "Would have been refused")
	wantParts(t, refused, "hard 2", "mixed 1")
	wantParts(t, would, "trial dry run 3", "soft soft 3")
	if text := lines(refused[strings.Index(refused, "Refused most"):]); strings.Contains(text, "trial") || strings.Contains(text, "soft") {
		t.Errorf("a rule that refuses nobody is among those that do: %s", text)
	}
	for _, wrong := range []string{"hard dry run", "hard soft", "mixed dry run"} {
		if strings.Contains(lines(body), wrong) {
			t.Errorf("the page says %q:\n%s", wrong, body)
		}
	}
	var api struct {
		Refused []struct{ Rule string }
		Would   []struct{ Rule string } `json:"would_refuse"`
	}
	if viewer.json("api/offenders", &api); len(api.Refused) != 2 || api.Refused[0].Rule != "hard" || len(api.Would) != 2 {
		t.Errorf("the API says %+v", api)
	}
}
