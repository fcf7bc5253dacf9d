package console_test

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// callOf returns a call to a route of the service.
func callOf(method, route string) *limitertest.View {
	return limitertest.NewView(method, route).From("198.51.100.7")
}

// lines is what a page shows, without tags, on one line.
func lines(html string) string {
	var text strings.Builder
	for part := range strings.SplitSeq(html, "<") {
		_, after, _ := strings.Cut(part, ">")
		text.WriteString(" " + after)
	}
	return strings.NewReplacer(" .", ".", " ,", ",").Replace(strings.Join(strings.Fields(text.String()), " "))
}

func wantParts(t *testing.T, html string, parts ...string) {
	t.Helper()
	text := lines(html)
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the page lacks %q:\n%s", part, text)
		}
	}
}

// The page of a subject has what all rules counted for it, its ban and its override, and can undo
// all of it. The audit has these acts, with their author and note.
func TestSubject(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		guard := attach(t, limiter, core.Rule{
			Name: "api", Limit: core.PerHour(4), Also: []core.Limit{core.PerMinute(50)},
		}, core.Rule{Name: "trial", Limit: core.PerHour(1), Mode: core.DryRun})
		attach(t, limiter, core.Rule{Name: "idle", Limit: core.PerHour(7)})
		operator := as(t, "operator", newPage(t, limiter, console.Options{}))
		for range 3 {
			guard.Check(callOf("GET", "/x"))
		}
		limitertest.AwaitDryRuns(t, limiter)
		wantParts(t, operator.wantPage("subject?subject=198.51.100.7"),
			"ip:198.51.100.7", "api The next call: allowed", "4/h rule 3 1 3 of 4", "50/m also 3 47", "trial dry run The next call: dry run exceeded",
			"1 further rule, of which nothing is used idle, 7/h", "subject_test.go:", "Called for GET /x")
		about := func(more ...string) []string {
			return append(more, "rule", "api", "subject", "ip:198.51.100.7", "note", "ticket 7")
		}
		operator.send("ban", 303, fields(about("for", "1h")...))
		operator.send("override", 303, fields(about("kind", "unlimited")...))
		operator.send("override", 303, fields(about("kind", "limits", "limits", "9/h, 20/m")...))
		wantParts(t, operator.afterRedirect("subject?subject=198.51.100.7&done=ban"),
			"The subject is banned.", "api The next call: banned, for another", "Banned for another", ": by hand, by alice. ticket 7", "Override: 9/h, 20/m, by alice, since", "ticket 7",
			"9/h override 3 6", "20/m override 3 17", "Unban from api", "Remove the override of api", "Reset api")
		operator.send("unban", 303, fields(about()...))
		operator.send("remove-override", 303, fields(about()...))
		operator.send("reset", 303, fields(about()...))
		wantParts(t, operator.afterRedirect("subject?subject=198.51.100.7&done=reset"), "The counters start afresh.", "2 further rules", "api, 4/h, 50/m")
		var want []operate.AuditEntry
		by := operate.AuditEntry{Rule: "api", Subject: "ip:198.51.100.7", Author: "alice", Note: "ticket 7"}
		for _, did := range [][3]string{
			{"ban", "", "banned for 1h0m0s"}, {"override", "", "unlimited"}, {"override", "unlimited", "9/h, 20/m"}, {"unban"}, {"override removed", "9/h, 20/m"}, {"reset"},
		} {
			by.Act, by.Before, by.After = did[0], did[1], did[2]
			want = append(want, by)
		}
		if got := audit(t, limiter); !slices.Equal(got, want) {
			t.Errorf("the audit is %+v, want %+v", got, want)
		}
	})
}

// The page says of a subject's bans how they came about, of the first eight.
func TestManyBansOfASubject(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		for i := range 9 {
			name := "rule " + strconv.Itoa(i)
			attach(t, limiter, core.Rule{Name: name, Limit: core.PerHour(4)})
			if _, err := operate.New(limiter).Ban(operate.WithActor(t.Context(), "alice", name), name, "user:bob", time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		var shown struct {
			Counted operate.Explanation
			Bans    map[string]struct{ Note string }
		}
		as(t, "viewer", newPage(t, limiter, console.Options{})).json("api/subject?subject=user:bob", &shown)
		for i, r := range shown.Counted.Rules {
			if explained := shown.Bans[r.Name].Note == r.Name; r.BannedUntil.IsZero() || explained != (i < 8) {
				t.Errorf("rule %d is %+v", i, r)
			}
		}
		if n := len(shown.Counted.Rules); n != 9 {
			t.Errorf("the page has %d rules", n)
		}
	})
}

// A ban is that of all rules of its name. The box of a rule in DryRun, which refuses nobody, has neither
// its author nor an unban.
func TestABanBesideADryRun(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		enforced := core.Rule{Name: "api", Limit: core.PerHour(1)}
		dry := enforced
		dry.Mode = core.DryRun
		attach(t, limiter, dry, enforced)
		if _, err := operate.New(limiter).Ban(operate.WithActor(t.Context(), "carol", "ticket 7"), "api", "ip:198.51.100.7", 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		body := as(t, "operator", newPage(t, limiter, console.Options{})).wantPage("subject?subject=198.51.100.7")
		sections := strings.Split(body, "<section class=\"box")[1:]
		for _, section := range sections {
			section, _, _ = strings.Cut(section, "</section>")
			text := lines(section)
			enforced := !strings.Contains(text, "dry run")
			if !strings.Contains(text, "Banned for another") || strings.Contains(text, "carol") != enforced ||
				strings.Contains(text, "Unban from api") != enforced || strings.HasPrefix(section, " refuses") != enforced {
				t.Errorf("enforced: %t: %s", enforced, section)
			}
		}
		if len(sections) != 2 {
			t.Errorf("the page has %d rules", len(sections))
		}
	})
}

// The page of an address has the marks of its networks, which end on their own pages.
func TestMarkedNetworks(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	attach(t, limiter, core.Rule{Name: "api", Limit: core.PerHour(4)})
	operator := as(t, "operator", newPage(t, limiter, console.Options{}))
	about := fields("rule", "api", "subject", "198.51.100.0/24", "note", "ticket 7", "for", "1h", "kind", "blocked")
	operator.send("ban", 303, about)
	operator.send("override", 303, about)
	wantParts(t, operator.wantPage("subject?subject=198.51.100.0/24"), "Unban from api", "Remove the override of api")
	body := operator.wantPage("subject?subject=198.51.100.7")
	wantParts(t, body, "Banned as ip:198.51.100.0/24 for another", "Override of ip:198.51.100.0/24: blocked until")
	if text := lines(body); strings.Contains(text, "Unban from api") || strings.Contains(text, "Remove the override of api") {
		t.Errorf("the page of an address ends marks of its network: %s", text)
	}
}

// A subject that nothing is known of, and none at all, are no errors.
func TestSubjectOfNothing(t *testing.T) {
	viewer := as(t, "viewer", newPage(t, newLimiter(t, core.Options{}), console.Options{}))
	operator := as(t, "operator", newPage(t, newLimiter(t, core.Options{}), console.Options{}))
	wantParts(t, operator.wantPage("subject?subject=user:nobody"), "Act on user:nobody")
	wantParts(t, viewer.wantPage("subject?subject=user:nobody"), "No rule has counted, banned or overridden anything")
	if body := viewer.wantPage("subject"); !strings.Contains(body, "Look up") {
		t.Errorf("without a subject: %s", body)
	}
}

// A call is explained, and a reference is read.
func TestExplain(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		guard := attach(t, limiter,
			core.Rule{Name: "api", Limit: core.PerHour(2), Methods: []string{"GET"}}, core.Rule{Name: "post", Limit: core.PerHour(2), Methods: []string{"POST"}})
		viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
		operator := as(t, "operator", newPage(t, limiter, console.Options{}))
		for who, want := range map[*browser]bool{viewer: false, operator: true} { // who may send headers
			if strings.Contains(who.wantPage("explain"), `name="header"`) != want {
				t.Errorf("the page of a %s asks for headers: %t, want %t", who.role, !want, want)
			}
		}
		const call = "explain?method=get&path=/users/7%3Fx&route=/users/:id&address=198.51.100.7&header=X-A:%20b%0AX-C:d"
		wantParts(t, operator.wantPage(call), "It would pass.", "The address is 198.51.100.7. The route is /users/:id", "api Applies", "post: method GET is not POST")
		for range 2 {
			guard.Check(callOf("GET", "/users/:id"))
		}
		body := operator.wantPage(call)
		wantParts(t, body, "It would be refused by the rule api: limit exceeded, for another", "api refuses the call", "The subject is ip:198.51.100.7", "2/h rule 2 0")
		if !strings.Contains(body, `<a href="subject?subject=ip%3a198.51.100.7">`) {
			t.Error("the page does not lead to the subject")
		}
		if got := viewer.get("explain?reference=abc"); got.StatusCode != 400 || !strings.Contains(got.body, "cannot be read without Options.ReferenceKeys") {
			t.Errorf("a reference without keys: status %d: %s", got.StatusCode, got.body)
		}
		if got := operator.get("explain?path=/&header=nothing"); got.StatusCode != 400 || !strings.Contains(got.body, "must be a line such as") {
			t.Errorf("a wrong header: status %d: %s", got.StatusCode, got.body)
		}
	})
}

// The reference of a refusal says what it was, and whether it is about a subject.
func TestReference(t *testing.T) {
	limiter := newLimiter(t, core.Options{ReferenceKeys: [][]byte{[]byte(strings.Repeat("k", 32))}})
	guard := attach(t, limiter, core.Rule{Name: "api", Limit: core.PerHour(1)})
	guard.Check(callOf("GET", "/"))
	refusal := guard.Check(callOf("GET", "/")).Refusal
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	wantParts(t, viewer.wantPage("explain?of=198.51.100.7&reference="+refusal.Reference),
		"the rule api refused a call: limit exceeded, limit 1/h, 0 left, to wait", "It is about ip:198.51.100.7.")
	wantParts(t, viewer.wantPage("explain?of=user:bob&reference="+refusal.Reference), "It is not about user:bob.")
	for of, want := range map[string]string{"user:bob": `"asked_about":"user:bob","about":false}`, "198.51.100.7": `"asked_about":"ip:198.51.100.7","about":true}`} {
		got := viewer.get("api/explain?of=" + of + "&reference=" + refusal.Reference)
		if got.StatusCode != 200 || !strings.Contains(got.body, want) || strings.Contains(got.body, `"subject"`) {
			t.Errorf("of %s: status %d: %s", of, got.StatusCode, got.body)
		}
	}
	for _, path := range []string{"explain?reference=abc", "api/explain?reference=" + refusal.Reference + "X"} {
		if got := viewer.get(path); got.StatusCode != 400 || !strings.Contains(got.body, "reference = ") {
			t.Errorf("%s: status %d: %s", path, got.StatusCode, got.body)
		}
	}
}

// Viewers see digests in place of subjects, on every page, and operators see the subjects.
func TestRedaction(t *testing.T) {
	withBothEngines(t, func(t *testing.T, options core.Options) {
		const secret = "user:mallory\xff"
		options.Identify = func(core.Request) (string, error) { return "mallory", nil }
		limiter := after(t, options, func(limiter *core.Limiter) {
			refuse(t, limiter.MustCounter("api", core.PerHour(1)), secret, 3)
		})
		attach(t, limiter, steered, core.Rule{Name: "login", Limit: core.PerHour(1), Key: func(core.Request) (string, error) { return secret, nil }},
			core.Rule{Name: "wrong", Limit: core.PerHour(1), Key: func(core.Request) (string, error) { return "", errors.New("of " + secret) }})
		if _, err := operate.New(limiter).Ban(operate.WithActor(t.Context(), "bob", "again "+secret), "api", secret, time.Hour); err != nil {
			t.Fatal(err)
		}
		overrides, err := operate.New(limiter).Overrides("login")
		if err == nil {
			err = overrides.Set(t.Context(), secret, operate.Override{Limits: []core.Limit{core.PerHour(7)}, Note: "for " + secret})
		}
		if err != nil {
			t.Fatal(err)
		}
		operate.New(limiter).RecordAttempt(t.Context(), operate.AuditEntry{Act: "ban", Subject: secret, After: `not done: "` + secret + `"`})
		page := newPage(t, limiter, console.Options{RedactSubjects: true})
		viewer, operator := as(t, "viewer", page), as(t, "operator", page)
		for _, path := range []string{"", "offenders", "bans", "audit", "rules", "explain?path=/"} {
			for _, api := range []string{"", "api/"} {
				if path == "" && api != "" {
					path = "now"
				}
				body := viewer.wantPage(api + path)
				if strings.Contains(body, "mallory") {
					t.Errorf("%s%s shows the subject to a viewer:\n%s", api, path, lines(body))
				}
				if n := strings.Count(body, "subject-"); (n > 0) != (path != "" && path != "now" && path != "rules") {
					t.Errorf("%s%s has %d digests", api, path, n)
				}
				if strings.Contains(operator.wantPage(api+path), "subject-") {
					t.Errorf("%s%s shows digests to an operator", api, path)
				}
			}
		}
		about := viewer.wantPage("api/subject?subject=" + url.QueryEscape(strconv.Quote(secret)))
		if strings.Contains(about, "mallory") || !strings.Contains(about, `"limits":["7/h"]`) {
			t.Errorf("what a viewer is told of a subject:\n%s", lines(about))
		}
		if body := operator.wantPage("offenders"); !strings.Contains(body, "mallory") {
			t.Error("operators do not see the subject")
		}
		digest := regexp.MustCompile("subject-[0-9a-f]+")
		other := as(t, "viewer", newPage(t, limiter, console.Options{RedactSubjects: true}))
		if here, there := digest.FindString(viewer.wantPage("offenders")), digest.FindString(other.wantPage("offenders")); here == "" || here == there {
			t.Errorf("the digests %q and %q need no key", here, there)
		}
	})
}

// Of a plan without a limit, the page says that nothing is counted, and not that this is unknown.
func TestSubjectWithAnUnlimitedPlan(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	guard := attach(t, limiter, core.Rule{
		Name: "plans", Limit: core.PerHour(9), Plans: map[string]core.Limit{"ours": core.Unlimited},
		Plan: func(core.Request) (string, error) { return "", nil },
	})
	guard.Check(callOf("GET", "/"))
	body := as(t, "viewer", newPage(t, limiter, console.Options{})).wantPage("subject?subject=198.51.100.7")
	wantParts(t, body, "9/h rule 1 8", "unlimited plan ours nothing is counted")
}
