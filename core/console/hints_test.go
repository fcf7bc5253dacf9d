package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
)

// A subject that no rule has counted may lack a word: the page says which. A subject that a Key has
// made is right without it.
func TestHintsAboutSubjects(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	tenants := attach(t, limiter, core.Rule{Name: "tenants", Seconds: 3600, Key: func(core.Request) (string, error) { return "acme", nil }})
	tenants.Check(callView{method: "GET", route: "/"})
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	const bare = "Rules count users as user:alice, and addresses as ip:203.0.113.7"
	for subject, want := range map[string]string{
		"bob":                                    bare,
		"203.0.113.0/24":                         bare,
		"203.0.113.7:80":                         "as ip:203.0.113.7.",
		"ip:203.0.113.7:80":                      "as ip:203.0.113.7.",
		"ip:2001:db8::1":                         "as ip:2001:db8::/64.",
		"acme":                                   "",
		"user:bob":                               "",
		"ip:203.0.113.7":                         "",
		"203.0.113.7":                            "",
		"2001:db8::1":                            "",
		"header:X-Tenant:acme":                   "as header:x-tenant:" + core.Digest("acme") + ".",
		"header:X-Tenant:" + core.Digest("acme"): "as header:x-tenant:" + core.Digest("acme") + ".",
		"header:x-tenant:" + core.Digest("acme"): "",
		"header:X-Tenant":                        bare,
		"query:Lang:de":                          "as query:Lang:" + core.Digest("de") + ".",
		"query:Lang:" + core.Digest("de"):        "",
		"host:API.example.com:8080":              "as host:api.example.com.",
		"host:api.example.com":                   "",
		"host:[2001:DB8::1]:80":                  "as host:2001:db8::1.",
		"param:tenant:ACME":                      "",
		"ip:2001:db8::/64":                       "",
	} {
		var got struct{ Hint string }
		viewer.json("api/subject?subject="+url.QueryEscape(subject), &got)
		if !strings.Contains(got.Hint, want) || want == "" && got.Hint != "" {
			t.Errorf("%s: the hint is %q, want %q", subject, got.Hint, want)
		}
		if body := viewer.wantPage("subject?subject=" + url.QueryEscape(subject)); !strings.Contains(body, want) {
			t.Errorf("%s: the page does not say %q", subject, want)
		}
	}
}

// A ban from a rule that this process does not have is set, because another process may have the
// rule. The reply says that it may be a misspelling.
func TestHintsAfterActs(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	attach(t, limiter, steered, core.Rule{Name: "trial", Seconds: 1, Ban: core.Ban{ByHand: true}})
	operator := as(t, "operator", newPage(t, limiter, console.Options{}))
	for _, c := range []struct{ rule, subject, hint string }{
		{"api", "user:bob", ""},
		{"api", "bob", "Rules count users as user:alice"},
		{"api", "header:X-Tenant:acme", "as header:x-tenant:" + core.Digest("acme")},
		{"apii", "user:bob", "No rule of this process sees bans under this name"},
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
	if !strings.Contains(body, "The subject is banned. No rule of this process sees bans under this name") {
		t.Errorf("the page does not say that the rule is not known:\n%s", body)
	}
}

// A misspelled field of an act in JSON is an error: an override without its "for" would have no end.
func TestUnknownFieldsOfActs(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	attach(t, limiter, steered)
	operator := as(t, "operator", newPage(t, limiter, console.Options{}))
	const about = `"rule": "api", "subject": "user:bob", "note": "ticket 7"`
	for act, says := range map[string]string{
		"override {\"max\": 5, \"span\": \"1h\", " + about + "}": `unknown field \"span\": the fields are rule, subject, note, kind, max, burst, for`,
		"unban {\"for\": \"1h\", " + about + "}":                 `unknown field \"for\": the fields are rule, subject, note`,
		"reset {\"note\": true}":                                 `\"note\" is neither a text nor a number`,
		"ban []":                                                 "it must be an object of texts and numbers",
	} {
		name, body, _ := strings.Cut(act, " ")
		r := httptest.NewRequest(http.MethodPost, "/limits/api/"+name, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if got := operator.do(r); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, says) {
			t.Errorf("%s: status %d: %s", act, got.StatusCode, got.body)
		}
	}
	if entries := audit(t, limiter); len(entries) > 0 {
		t.Errorf("something was done: %+v", entries)
	}
}

// The rule of a list is chosen from those that this process has, and that of the URL.
func TestRulesToChooseFrom(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	if body := viewer.wantPage("bans"); !strings.Contains(body, `<input id="rule" name="rule"`) {
		t.Errorf("without rules, a name cannot be typed: %s", body)
	}
	attach(t, limiter, steered, core.Rule{Name: `<b>"`, Limit: core.PerHour(1), Ban: core.Ban{ByHand: true}})
	const options = `<option value="&lt;b&gt;&#34;">&lt;b&gt;&#34;</option><option value="api" selected>api</option></select>`
	for path, want := range map[string]string{
		"offenders":             `<select id="rule" name="rule"><option value="">all rules</option>`,
		"offenders?rule=api":    `<option value="">all rules</option>` + options,
		"offenders?rule=remote": `<option value="">all rules</option><option value="remote" selected>remote</option>`,
		"bans?rule=api":         `<option value="">all rules</option>` + options,
		"bans?rule=remote":      `<select id="rule" name="rule"><option value="">all rules</option><option value="remote" selected>remote</option>`,
	} {
		if body := viewer.wantPage(path); !strings.Contains(body, want) {
			t.Errorf("%s lacks %s:\n%s", path, want, body)
		}
	}
}

// A list about a rule that this process does not have says so: its name may be misspelled.
func TestHintsAboutRules(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	attach(t, limiter, steered, core.Rule{Name: "plain", Seconds: 1})
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	for path, want := range map[string]string{
		"offenders?rule=apii":  "No rule of this process has this name",
		"offenders?rule=plain": "",
		"offenders":            "",
		"bans?rule=apii":       "No rule of this process sees bans under this name",
		"bans?rule=plain":      "No rule of this process sees bans under this name",
		"bans?rule=api":        "",
		"bans":                 "",
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
		guard.Check(callView{method: "GET", route: "/"})
		trial.Check(callView{method: "GET", route: "/"})
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

// tenantView is a call with a header that names a tenant.
type tenantView struct {
	callView
	tenant string
}

func (v tenantView) Header(string) []string { return []string{v.tenant} }

// A tenant is found, and banned, by its name, though rules count a digest of it.
func TestTenantsByName(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	tenants := attach(t, limiter, core.Rule{Name: "tenants", Limit: core.PerHour(7), Key: core.ByHeader("X-Tenant"), Ban: core.Ban{ByHand: true}})
	call := tenantView{callView{method: "GET", route: "/"}, "acme"}
	tenants.Check(call)
	operator := as(t, "operator", newPage(t, limiter, console.Options{}))
	const typed = "header:X-Tenant=acme"
	wantParts(t, operator.wantPage("subject?subject="+url.QueryEscape(typed)), "header:x-tenant:"+core.Digest("acme"), "7/h rule 1 6")
	operator.send("ban", http.StatusSeeOther, fields("rule", "tenants", "subject", typed, "for", "1h", "note", "ticket 7"))
	if answer := tenants.Check(call); answer.Refusal == nil || answer.Refusal.Decision.Reason != core.Banned {
		t.Errorf("the tenant is not banned: %+v", answer.Refusal)
	}
}
