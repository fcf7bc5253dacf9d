package operate_test

import (
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/quote"
	"github.com/accesslimit/accesslimit/core/operate"
)

// A subject is typed as people name it, and found as rules count it.
func TestSubject(t *testing.T) {
	acme := core.Digest("acme")
	ops := operate.New(newLimiter(t, core.Options{}))
	for typed, want := range map[string]string{
		"user:alice": "user:alice", " user:alice ": "user:alice", "203.0.113.7": "ip:203.0.113.7", "2001:db8::1": "ip:2001:db8::/64", "203.0.113.0/24": "ip:203.0.113.0/24",
		"header:X-Tenant=acme": "header:x-tenant:" + acme, "query:Tenant=acme": "query:Tenant:" + acme,
		"header:X-Tenant:" + acme:         "header:X-Tenant:" + acme,
		"header:X-Tenant=":                "header:x-tenant:" + core.Digest(""),
		"header:X-Tenant=a=b":             "header:x-tenant:" + core.Digest("a=b"),
		"user:alice|header:X-Tenant=acme": "user:alice|header:x-tenant:" + acme,
		"param:id=7":                      "param:id=7", "value:a=b": "value:a=b", "header:X-Tenant:a=b": "header:X-Tenant:a=b",
		`"\x00 "`: "\x00 ", `"header:X-Tenant=acme"`: "header:X-Tenant=acme", "": "",
	} {
		if got, err := ops.Subject(typed); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", typed, got, err, want)
		}
	}
	if got, err := ops.Subject(`"open`); err == nil {
		t.Errorf("%q", got)
	}
}

// The text of a subject stands for that subject, and is the subject itself if it can be.
func TestSubjectText(t *testing.T) {
	acme := core.Digest("acme")
	for subject, want := range map[string]string{
		"": "", "user:alice": "user:alice", `user:CORP\alice`: `user:CORP\alice`, "a b": "a b", `a"b`: `a"b`, "param:id=7": "param:id=7",
		"ip:203.0.113.7": "ip:203.0.113.7", "ip:2001:db8::/64": "ip:2001:db8::/64", "user:m|query:a:" + acme: "user:m|query:a:" + acme,
		"203.0.113.7": `"203.0.113.7"`, "::1": `"::1"`, "203.0.113.0/24": `"203.0.113.0/24"`,
		"query:a=b": `"query:a=b"`, "user:m|query:a=b": `"user:m|query:a=b"`, "x|header:n=v": `"x|header:n=v"`, "header:n=|x": `"header:n=|x"`,
		`"`: `"\""`, `"a"`: `"\"a\""`, " a": `" a"`, "a ": `"a "`, " ": `" "`, "\x00\xff": `"\x00\xff"`, "\u202ea": `"\u202ea"`,
	} {
		if got := operate.SubjectText(subject); got != want {
			t.Errorf("the text of %q is %s, want %s", subject, got, want)
		}
	}
}

func FuzzSubjectText(f *testing.F) {
	for _, subject := range []string{
		"", "user:alice", "ip:2001:db8::/64", "fe80::1%eth0", "user:m|query:a=b", "query:a=b", "x|header:n=v", "header:=|", `"`, `"a"`, "`a`", " a", `\`, "\x00\xff",
		"\u00a0a",
	} {
		f.Add(subject)
	}
	ops := operate.New(newLimiter(f, core.Options{}))
	f.Fuzz(func(t *testing.T, subject string) {
		text := operate.SubjectText(subject)
		if again, err := ops.Subject(text); err != nil || again != subject || !quote.Printable(text) {
			t.Errorf("the text of %q is %q, which means %q, %v", subject, text, again, err)
		}
	})
}

// A tenant that is typed by its name is the one that a rule by header counts.
func TestSubjectOfAHeader(t *testing.T) {
	l := newLimiter(t, core.Options{})
	guard := attach(t, l, core.Rule{Name: "n", Seconds: 3600, MaxCount: 1, Key: core.ByHeader("Subject")})
	ops := operate.New(l)
	subject, err := ops.Subject("header:Subject=acme")
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, guard, "acme", 200, 429)
	if changed, err := ops.Reset(background, "n", subject); !changed || err != nil {
		t.Error(changed, err)
	}
	wantStatus(t, guard, "acme", 200)
}

// A subject that no key of this library makes is probably misspelled.
func TestSubjectHint(t *testing.T) {
	acme, de := core.Digest("acme"), core.Digest("de")
	ops := operate.New(newLimiter(t, core.Options{}))
	for subject, want := range map[string]string{
		"bob": bare, "203.0.113.0/24": bare, "header:X-Tenant": bare,
		"203.0.113.7:80": "as ip:203.0.113.7.", "ip:203.0.113.7:80": "as ip:203.0.113.7.", "ip:2001:db8::1": "as ip:2001:db8::/64.",
		"header:X-Tenant:acme": "as header:x-tenant:" + acme + ".", "header:X-Tenant:" + acme: "as header:x-tenant:" + acme + ".",
		"query:Lang:de":             "as query:Lang:" + de + ".",
		"host:API.example.com:8080": "as host:api.example.com.", "host:[2001:DB8::1]:80": "as host:2001:db8::1.",
		"user:bob": "", "ip:203.0.113.7": "", "ip:2001:db8::/64": "", "header:x-tenant:" + acme: "", "query:Lang:" + de: "", "host:api.example.com": "",
		"param:tenant:ACME": "",
	} {
		if got := ops.SubjectHint(subject); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s: the hint is %q, want %q", subject, got, want)
		}
	}
}

// bare is the hint about a subject without a word of a key.
const bare = "Rules count users as user:alice, and addresses as ip:203.0.113.7. Only a Key or a handler of the service makes other subjects."

// Before an act, a program learns that the rule or the subject is probably misspelled.
func TestActHint(t *testing.T) {
	l := newLimiter(t, core.Options{Identify: core.ContextValue("user")})
	for _, rule := range []core.Rule{
		{Name: "login"}, {Name: "api", Key: core.ByUser}, {Name: "mine", NeedLogin: true}, {Name: "all", Key: core.Global},
		{Name: "own", Key: bySubject}, {Name: "host", Key: core.ByHost},
	} {
		rule.Seconds = 60
		attach(t, l, rule)
	}
	ops := operate.New(l)
	for _, test := range []struct{ rule, subject, want string }{
		{"login", "ip:203.0.113.7", ""}, {"api", "user:alice", ""}, {"api", "ip:203.0.113.7", ""}, {"api", "ip:203.0.113.0/24", ""}, {"mine", "user:alice", ""},
		{"all", "all", ""}, {"own", "anything", ""}, {"host", "host:example.com", ""},
		{"logn", "ip:203.0.113.7", `No rule is named "logn". The rules: all, api, host, login, mine, own.`},
		{"login", "user:alice", `Rule "login" counts by ip, so it never meets the subject "user:alice".`},
		{"mine", "host:a", `Rule "mine" counts by user, so it never meets the subject "host:a".`},
		{"all", "user:alice", `Rule "all" counts by global, so it never meets the subject "user:alice".`},
		{"api", "alice", bare},
		{"login", "ip:2001:db8::/64", ""}, {"login", "ip:2001:db8::/56", ""}, {"login", "ip:unknown", ""},
		{"login", "ip:203.0.113.999", `Rule "login" counts by ip, so it never meets the subject "ip:203.0.113.999".`},
		{"login", "ip:203.0.113.0/24", ""}, {"login", "ip:203.0.113.9/24", `Rule "login" counts by ip, so it never meets the subject "ip:203.0.113.9/24".`},
		{"login", "ip:", `Rule "login" counts by ip, so it never meets the subject "ip:".`},
		{"login", "ip:2001:db8::1", "Rules by IP count this address as ip:2001:db8::/64."},
		{"api", "ip:2001:DB8::/64", `Rule "api" counts by user, so it never meets the subject "ip:2001:DB8::/64".`},
	} {
		if got := ops.ActHint(test.rule, test.subject); got != test.want {
			t.Errorf("%s, %s: %q", test.rule, test.subject, got)
		}
	}
}
