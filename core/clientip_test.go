package core_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

var proxies = core.ClientIP{TrustedProxies: []string{"10.0.0.0/8", "fd00::/8"}}

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
	wantStatus(t, newGuard(t, limiter, core.Rule{Name: "n", Seconds: 1}), newView("GET", "/").with("X-Forwarded-For", "203.0.113.7"), 200)
	if d := heard.last(t, 1); d.Key != "ip:192.0.2.1" {
		t.Errorf("counted as %s", d.Key)
	}
}
