package core_test

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// countedFor returns the subject for which a rule with this key counts a call.
func countedFor(t *testing.T, k core.KeyFunc, v adapter.View) string {
	t.Helper()
	var heard decisions
	limiter := newLimiter(t, core.Options{Identify: whoSays, OnDecision: heard.note})
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "rule", Seconds: 1, Key: k}), v, 200)
	return heard.last(t, 1).Key
}

// IPSubject is the subject that rules by IP use. So an operator who has an address finds its
// counters.
func TestIPSubject(t *testing.T) {
	for _, test := range []struct {
		addr   string
		prefix int // of the Limiter
		want   string
	}{
		{"192.0.2.1", 0, "ip:192.0.2.1"},
		{"::ffff:192.0.2.1", 56, "ip:192.0.2.1"},
		{"64:ff9b::c000:201", 0, "ip:192.0.2.1"},
		{"2001:db8::1:2:3:4", 0, "ip:2001:db8::/64"},
		{"2001:db8:0:77::1", 56, "ip:2001:db8::/56"},
		{"2001:db8::1", 128, "ip:2001:db8::1"},
		{"fe80::1%eth0", 0, "ip:fe80::/64"},
		{"", 0, "ip:unknown"},
	} {
		var heard decisions
		limiter := newLimiter(t, core.Options{OnDecision: heard.note, ClientIP: core.ClientIP{IPv6Prefix: test.prefix}})
		addr, _ := netip.ParseAddr(test.addr)
		wantStatus(t, newGuard(t, limiter, core.Rule{Name: "n", Seconds: 1}), newView("GET", "/").From(test.addr), 200)
		if got, counted := limiter.IPSubject(addr), heard.last(t, 1).Key; got != test.want || counted != test.want {
			t.Errorf("%s, grouped by %d: %s, counted as %s, want %s", test.addr, test.prefix, got, counted, test.want)
		}
	}
}

type tenant int

func (t tenant) String() string { return fmt.Sprint("tenant-", int(t)) }

func ofUsers() *fakeView { return newView("GET", "/users/:id") }

func ofTenant(value any) *fakeView {
	v := ofUsers()
	v.Values["tenant"] = value
	return v
}

var byTenant, byAPIKey = core.ByValue("tenant"), core.ByHeader("x-api-KEY")

// keyFuncs are key functions, and the subject for which they count a call.
var keyFuncs = []struct {
	name string
	key  core.KeyFunc
	view *fakeView
	want string
}{
	{"unset", nil, ofUsers(), me},
	{"ByIP", core.ByIP, ofUsers(), me},
	{"ByIP of an IPv6 caller", core.ByIP, ofUsers().From("2001:db8:1:2::3"), "ip:2001:db8:1:2::/64"},
	{"ByIP of nobody knows where", core.ByIP, ofUsers().From(""), "ip:unknown"},
	{"ByUser", core.ByUser, ofUsers().As("alice"), "user:alice"},
	{"ByUser in capitals", core.ByUser, ofUsers().As("Alice"), "user:Alice"},
	{"ByUser of nobody", core.ByUser, ofUsers(), me},
	{"ByRoute", core.ByRoute, ofUsers(), "GET /users/:id"},
	{"ByRoute of a HEAD", core.ByRoute, newView("HEAD", "/x"), "GET /x"},
	{"ByRoute of a made-up method", core.ByRoute, newView("BREW", "/x"), "OTHER /x"},
	{"ByRoute of no route", core.ByRoute, newView("GET", ""), "(no route)"},
	{"Global", core.Global, ofUsers(), "rule"},

	{"ByValue", byTenant, ofTenant("acme"), "value:acme"},
	{"ByValue of a number", byTenant, ofTenant(7), "value:7"},
	{"ByValue of a Stringer", byTenant, ofTenant(tenant(7)), "value:tenant-7"},
	{"ByValue in capitals", byTenant, ofTenant("Acme"), "value:Acme"},
	{"ByValue of a header", byTenant, ofUsers().With("Tenant", "acme").With("tenant", "acme"), me},
	{"ByValue of nothing", byTenant, ofUsers(), me},
	{"ByValue of an empty string", byTenant, ofTenant(""), me},

	{"ByHeader", byAPIKey, ofUsers().With("X-Api-Key", "secret"), "header:x-api-key:" + core.Digest("secret")},
	{"ByHeader in capitals", byAPIKey, ofUsers().With("X-Api-Key", "SECRET"), "header:x-api-key:" + core.Digest("SECRET")},
	{"ByHeader of several lines", byAPIKey, ofUsers().With("X-Api-Key", "a").With("X-Api-Key", "b"), "header:x-api-key:" + core.Digest("a")},
	{"ByHeader of several lines, the first empty", byAPIKey, ofUsers().With("X-Api-Key", "").With("X-Api-Key", "b"), me},
	{"ByHeader of a missing one", byAPIKey, ofUsers(), me},
	{"ByHeader of an empty one", byAPIKey, ofUsers().With("X-Api-Key", ""), me},
	{"ByHeader of another one", byAPIKey, ofUsers().With("X-Other", "secret"), me},

	{"ByHost", core.ByHost, ofUsers().With("Host", "API.Example.com"), "host:api.example.com"},
	{"ByHost with a port", core.ByHost, ofUsers().With("Host", "api.example.com:8080"), "host:api.example.com"},
	{"ByHost with an empty port", core.ByHost, ofUsers().With("Host", "api.example.com:"), "host:api.example.com"},
	{"ByHost with a trailing dot", core.ByHost, ofUsers().With("Host", "api.example.com.:443"), "host:api.example.com"},
	{"ByHost of IPv6", core.ByHost, ofUsers().With("Host", "[2001:DB8::1]:443"), "host:2001:db8::1"},
	{"ByHost of IPv6 without a port", core.ByHost, ofUsers().With("Host", "[2001:db8::1]"), "host:2001:db8::1"},
	{"ByHost of an address without brackets", core.ByHost, ofUsers().With("Host", "2001:db8::1"), "host:2001:db8::1"},
	{"ByHost with half a bracket", core.ByHost, ofUsers().With("Host", "[::1"), "host:::1"},
	{"ByHost with a user", core.ByHost, ofUsers().With("Host", "ip@api.example.com:80"), "host:ip@api.example.com"},
	{"ByHost of a port alone", core.ByHost, ofUsers().With("Host", ":443"), me},
	{"ByHost of a dot alone", core.ByHost, ofUsers().With("Host", "."), me},
	{"ByHost of brackets alone", core.ByHost, ofUsers().With("Host", "[]:443"), me},
	{"ByHost of none", core.ByHost, ofUsers(), me},

	{"ByQuery", core.ByQuery("key"), ofUsers().Asking("key=a%20secret&key=b"), "query:key:" + core.Digest("a secret")},
	{"ByQuery of another name", core.ByQuery("KEY"), ofUsers().Asking("key=secret"), me},
	{"ByQuery of an empty one", core.ByQuery("key"), ofUsers().Asking("key="), me},
	{"ByQuery of none", core.ByQuery("key"), ofUsers(), me},

	{"ByParam", core.ByParam("id"), ofUsers().Matching("id", "7"), "param:id:7"},
	{"ByParam that looks like an address", core.ByParam("id"), ofUsers().Matching("id", "ip:192.0.2.9"), "param:id:ip:192.0.2.9"},
	{"ByParam that is not decoded", core.ByParam("id"), ofUsers().Matching("id", "%61%40b"), "param:id:a@b"},
	{"ByParam that is no encoding", core.ByParam("id"), ofUsers().Matching("id", "100%"), "param:id:100%"},
	{"ByParam of another name", core.ByParam("name"), ofUsers().Matching("id", "7"), me},
	{"ByParam of none", core.ByParam("id"), ofUsers(), me},

	{"an address that a function returns", key("2001:db8::1"), ofUsers(), "2001:db8::1"},

	{"Join", core.Join(core.ByUser, core.ByRoute), ofUsers().As("alice"), "user:alice|GET /users/:id"},
	{"Join of one", core.Join(core.ByUser), ofUsers().As("alice"), "user:alice"},
	{"Join of none", core.Join(), ofUsers(), me},
	{"Join with something missing", core.Join(core.ByUser, byTenant), ofUsers().From("").As("alice"), "user:alice|ip:unknown"},
	{"Join of joined", core.Join(core.Join(key("a"), key("b")), key("c")), ofUsers(), "a%7Cb|c"},
}

func TestKeyFuncs(t *testing.T) {
	for _, test := range keyFuncs {
		t.Run(test.name, func(t *testing.T) {
			if got := countedFor(t, test.key, test.view); got != test.want {
				t.Errorf("counted for %q, want %q", got, test.want)
			}
		})
	}
}

// No two combinations give the same subject.
func TestJoinIsInjective(t *testing.T) {
	parts := []string{"a", "b", "c", "a|b", "b|c", "|", "||", "%7C", "a%7Cb", "%257C", "%", "%25", "ip:192.0.2.1"}
	seen := make(map[string]string)
	for _, first := range parts {
		for _, second := range parts {
			for combination, join := range map[string]core.KeyFunc{first: core.Join(key(first)), first + "\x00" + second: core.Join(key(first), key(second))} {
				joined, _ := join(nil) // these functions ask for nothing of the call
				if other, ok := seen[joined]; ok && other != combination {
					t.Fatalf("%q and %q are both %q", other, combination, joined)
				}
				seen[joined] = combination
			}
		}
	}
}

func TestJoinStopsAtAnError(t *testing.T) {
	asked := 0
	count := func(core.Request) (string, error) { asked++; return "x", nil }
	fail := func(core.Request) (string, error) { return "", errors.New("no") }
	guard := newGuard(t, newLimiter(t, core.Options{}), core.Rule{Name: "n", Seconds: 1, Key: core.Join(count, fail, count)})
	wantStatus(t, guard, newView("GET", "/"), 503)
	if asked != 1 {
		t.Errorf("%d parts were asked for", asked)
	}
}

func TestDigest(t *testing.T) {
	// printf %s secret | sha256sum | cut -c 1-32
	if got := core.Digest("secret"); got != "2bb80d537b1da3e38bd30361aa855686" {
		t.Errorf("Digest(secret) = %s", got)
	}
	seen := make(map[string]bool)
	for _, secret := range []string{"", "a", "A", "a ", "secret", strings.Repeat("s", 1<<20), "\x00", "\xff"} {
		digest := core.Digest(secret)
		if len(digest) != 32 || strings.Trim(digest, "0123456789abcdef") != "" || seen[digest] {
			t.Errorf("Digest of %.10q: %s", secret, digest)
		}
		seen[digest] = true
	}
}

func TestRequestOfAKeyFunction(t *testing.T) {
	v := newView("POST", "/items/:id").As("alice").With("Cookie", "a=1; b=2").With("X-Two", "1").With("X-Two", "2")
	v.URLPath, v.BodySize = "/items/7", 4711
	var saw string
	limiter := newLimiter(t, core.Options{Identify: func(r core.Request) (string, error) {
		if _, _ = r.User(); r.Rule() != "" { // asking for the user here must not recurse
			t.Errorf("Identify is asked for rule %q, and not for the whole call", r.Rule())
		}
		return whoSays(r)
	}})
	guard := newGuard(t, limiter, core.Rule{Name: "first", Seconds: 1, NeedLogin: true}, core.Rule{Name: "second", Seconds: 1, Key: func(r core.Request) (string, error) {
		user, err := r.User()
		saw = fmt.Sprint(r.Method(), r.Path(), r.Route(), r.RemoteAddr(), r.ClientIP(), r.Header("X-Two"), r.Cookie("b"), r.Value("user"),
			r.Size(), user, err, r.Rule(), r.Context() == v.Ctx)
		return "", nil
	}})
	wantStatus(t, guard, v, 200)
	if want := fmt.Sprint("POST", "/items/7", "/items/:id", v.Peer, v.Peer, []string{"1", "2"}, "2", "alice", int64(4711), "alice", nil, "second", true); saw != want {
		t.Errorf("saw %s, want %s", saw, want)
	}
}

// An owner may wrap the Request. ByIP, and functions that fall back to it, still group addresses
// and recognize unknown ones.
func TestKeyFunctionsTakeWrappedRequests(t *testing.T) {
	type wrapped struct{ core.Request }
	for peer, want := range map[string]string{"192.0.2.1": "ip:192.0.2.1", "2001:db8:1:2::3": "ip:2001:db8:1:2::/64", "": "ip:unknown"} {
		for _, k := range []core.KeyFunc{core.ByIP, core.Join(core.ByUser)} {
			v := newView("GET", "/").From(peer)
			if got := countedFor(t, func(r core.Request) (string, error) { return k(wrapped{r}) }, v); got != want {
				t.Errorf("%q is %s, want %s", peer, got, want)
			}
		}
	}
}

var proxies = core.ClientIP{TrustedProxies: []string{"10.0.0.0/8", "fd00::/8"}}

func TestRequestsShowTheClientIP(t *testing.T) {
	var client, peer string
	limiter := newLimiter(t, core.Options{ClientIP: proxies})
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 1, Key: func(r core.Request) (string, error) {
		client, peer = r.ClientIP().String(), r.RemoteAddr().String()
		return "", nil
	}})
	wantStatus(t, guard, newView("GET", "/").From("10.0.0.1").With("X-Forwarded-For", "[2001:db8::1%x]:80"), 200)
	if client != "2001:db8::1" || peer != "10.0.0.1" { // exact: only the counting is by prefix
		t.Errorf("client %s, peer %s", client, peer)
	}
}

func TestClientIPRefused(t *testing.T) {
	for _, proxy := range []string{
		"", " ", "proxy.example.com", "localhost", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8", "10.0.0.0/", "10.0.0.1:80", "10.0.0.1 ",
		"[::1]", "::1/129", "fe80::1%eth0", "fe80::%eth0/64", "010.0.0.1", "10.0.0.0/08", "10.0.0.1,10.0.0.2", "UNIX", "*",
		"0.0.0.0/0", "10.0.0.0/0", "::/0", "2001:db8::/0", // everybody
		// CVE-2026-90711: all of IPv4, or nobody.
		"::ffff:10.0.0.0/8", "::ffff:10.0.0.0/95", "::ffff:0:0/64",
		"::ffff:0:0/96", "::ffff:10.0.0.0/96", // all of IPv4, plainly
	} {
		_, err := core.New(core.Options{ClientIP: core.ClientIP{TrustedProxies: []string{"10.0.0.0/8", proxy}}})
		if err == nil {
			t.Errorf("the proxy %q is accepted", proxy)
			continue
		}
		wantRuleError(t, err, "", "Options.ClientIP.TrustedProxies", proxy)
	}
	trusted := []string{"10.0.0.0/8"}
	for _, test := range []struct {
		name         string
		ip           core.ClientIP
		field, value string
	}{
		{"header without proxies", core.ClientIP{Header: "X-Real-IP"}, "Header", "X-Real-IP"},
		{"header that is none", core.ClientIP{Header: "X Real IP", TrustedProxies: trusted}, "Header", "X Real IP"},
		{"header with a colon", core.ClientIP{Header: "X-Real-IP:", TrustedProxies: trusted}, "Header", "X-Real-IP:"},
		{"negative prefix", core.ClientIP{IPv6Prefix: -1}, "IPv6Prefix", "-1"},
		{"prefix too short", core.ClientIP{IPv6Prefix: 31}, "IPv6Prefix", "31"},
		{"prefix too long", core.ClientIP{IPv6Prefix: 129}, "IPv6Prefix", "129"},
		{"largest prefix", core.ClientIP{IPv6Prefix: math.MaxInt}, "IPv6Prefix", fmt.Sprint(math.MaxInt)},
		{"most negative prefix", core.ClientIP{IPv6Prefix: math.MinInt}, "IPv6Prefix", fmt.Sprint(math.MinInt)},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := core.New(core.Options{ClientIP: test.ip})
			wantRuleError(t, err, "", "Options.ClientIP."+test.field, test.value)
		})
	}
}

// The list belongs to the caller. Changing it later makes the limiter trust nobody else.
func TestTrustedProxiesAreCopied(t *testing.T) {
	proxies := []string{"10.0.0.0/8"}
	var heard decisions
	limiter := newLimiter(t, core.Options{ClientIP: core.ClientIP{TrustedProxies: proxies}, OnDecision: heard.note})
	proxies[0] = "192.0.2.0/24"
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "n", Seconds: 1}), newView("GET", "/").With("X-Forwarded-For", "203.0.113.7"), 200)
	if d := heard.last(t, 1); d.Key != "ip:192.0.2.1" {
		t.Errorf("counted as %s", d.Key)
	}
}
