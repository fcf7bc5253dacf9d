package core_test

import (
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// A call through a trusted proxy, 10.0.0.1, which writes RFC 7239.
func TestForwarded(t *testing.T) {
	ip := core.ClientIP{TrustedProxies: proxies.TrustedProxies, Header: "forwarded"}
	for _, test := range []struct{ name, lines, want string }{
		{"plain", `for=203.0.113.7`, "203.0.113.7"},
		{"in capitals", `FOR=203.0.113.7`, "203.0.113.7"},
		{"among others", `proto=https;For=203.0.113.7;by=10.0.0.1`, "203.0.113.7"},
		{"spaces", ` proto=https ; for = 203.0.113.7 ; by=10.0.0.1 `, "203.0.113.7"},
		{"quotes", `for="203.0.113.7"`, "203.0.113.7"},
		{"quotes and port", `for="203.0.113.7:4711"`, "203.0.113.7"},
		{"IPv6", `for="[2001:db8:1:2:3::4]"`, "2001:db8:1:2::/64"},
		{"IPv6 and port", `for="[2001:db8:1:2:3::4]:4711"`, "2001:db8:1:2::/64"},
		{"obfuscated port", `for="[2001:db8:1:2:3::4]:_x"`, "10.0.0.1"},
		{"spoofed", `for=1.1.1.1, for=203.0.113.7`, "203.0.113.7"},
		{"two proxies", `for=1.1.1.1, for=203.0.113.7;by=10.2.2.2, for=10.9.9.9`, "203.0.113.7"},
		{"several lines", "for=1.1.1.1\nfor=203.0.113.7\nfor=10.9.9.9", "203.0.113.7"},
		{"all trusted", `for=10.3.3.3, for=10.2.2.2`, "10.3.3.3"},

		{"unknown stops", `for=1.1.1.1, for=unknown`, "10.0.0.1"},
		{"hidden stops", `for=1.1.1.1, for="_hidden"`, "10.0.0.1"},
		{"stops at the last trusted", `for=1.1.1.1, for=_x, for=10.9.9.9`, "10.9.9.9"},
		{"without for", `for=1.1.1.1, proto=https`, "10.0.0.1"},
		{"empty element", `for=1.1.1.1,`, "10.0.0.1"},
		{"empty value", `for=1.1.1.1, for=`, "10.0.0.1"},
		{"no pair", `203.0.113.7`, "10.0.0.1"},

		{"comma in quotes", `for=1.1.1.1, by="_a,b";for=203.0.113.7`, "203.0.113.7"},
		{"comma in quotes behind", `for=1.1.1.1, for=203.0.113.7;by="_a,for=1.1.1.1"`, "203.0.113.7"},
		{"semicolon in quotes", `proto=http;host="a;for=1.1.1.1";for=203.0.113.7`, "203.0.113.7"},
		{"semicolon in quotes behind", `for=203.0.113.7;host="a;for=1.1.1.1"`, "203.0.113.7"},
		{"quote left open by the caller", `for="1.1.1.1, for=203.0.113.7`, "203.0.113.7"},
		{"quote left open on the caller's line", "for=\"1.1.1.1\nfor=203.0.113.7", "203.0.113.7"},
		{"escaped quote in the proxy's element", `for=1.1.1.1;x=y, host="a\"";for=203.0.113.7`, "203.0.113.7"},
		{"escaped quote behind", `for=1.1.1.1, for=203.0.113.7;host="a\"b"`, "203.0.113.7"},
		{"escaped quotes behind", `for=1.1.1.1, for=203.0.113.7;host="\";for=1.1.1.1;\"\\"`, "203.0.113.7"},
		{"escaped quote left open by the caller", `for="1.1.1.1\", for=203.0.113.7`, "203.0.113.7"},
		{"escaped backslash", `for=1.1.1.1, host="a\\";for=203.0.113.7`, "203.0.113.7"},

		{"1000 elements", strings.Repeat("for=1.1.1.1, ", 1000) + "for=203.0.113.7", "203.0.113.7"},
		{"1000 trusted elements", "for=203.0.113.7" + strings.Repeat(`, for="10.2.2.2:80"`, 1000), "203.0.113.7"},
		{"a megabyte of quotes", strings.Repeat(`"`, 1<<20) + ", for=203.0.113.7", "203.0.113.7"},
		{"a megabyte of value", "for=" + strings.Repeat("1", 1<<20), "10.0.0.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newView("GET", "/").from("10.0.0.1").with("X-Forwarded-For", "1.1.1.1")
			v.request["Forwarded"] = strings.Split(test.lines, "\n")
			if got := subject(t, ip, v); got != "ip:"+test.want {
				t.Errorf("counted as %s, want ip:%s", got, test.want)
			}
			if got := subject(t, ip, v.from("198.51.100.9")); got != "ip:198.51.100.9" {
				t.Errorf("an untrusted peer is counted as %s", got)
			}
		})
	}
}

// One header with a single address, and no other is believed: not even where it is missing.
func TestSingleHeader(t *testing.T) {
	ip := core.ClientIP{TrustedProxies: proxies.TrustedProxies, Header: "x-real-ip"}
	for _, test := range []struct{ name, value, want string }{
		{"address", "203.0.113.7", "203.0.113.7"},
		{"IPv6", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"},
		{"port", "203.0.113.7:80", "203.0.113.7"},
		{"missing", "", "10.0.0.1"},
		{"junk", "junk", "10.0.0.1"},
		{"a list after all", "1.1.1.1, 203.0.113.7", "203.0.113.7"},
	} {
		v := newView("GET", "/").from("10.0.0.1").with("X-Forwarded-For", "1.1.1.1").with("Forwarded", "for=1.1.1.1")
		if test.value != "" {
			v.with("X-Real-Ip", test.value)
		}
		if got := subject(t, ip, v); got != "ip:"+test.want {
			t.Errorf("%s: counted as %s, want ip:%s", test.name, got, test.want)
		}
	}
}

func TestRequestsShowTheClientIP(t *testing.T) {
	var client, peer string
	limiter := newLimiter(t, core.Options{ClientIP: proxies})
	guard := newGuard(t, limiter, core.Rule{Name: "n", Seconds: 1, Key: func(r core.Request) (string, error) {
		client, peer = r.ClientIP().String(), r.RemoteAddr().String()
		return "", nil
	}})
	wantStatus(t, guard, newView("GET", "/").from("10.0.0.1").with("X-Forwarded-For", "[2001:db8::1%x]:80"), 200)
	if client != "2001:db8::1" || peer != "10.0.0.1" { // exact: only the counting is by prefix
		t.Errorf("client %s, peer %s", client, peer)
	}
}
