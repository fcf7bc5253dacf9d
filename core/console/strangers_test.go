package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
)

// counted is byHeader, and counts how often it was called.
type counted struct{ calls atomic.Int64 }

func (c *counted) authorize(r *http.Request) (console.Identity, error) {
	c.calls.Add(1)
	return byHeader(r)
}

// An address with many strangers' requests is refused before the authorizer is called, also if the
// right token is among them. Others are not, and requests that are authorized do not count.
func TestStrangersAreLimitedByAddress(t *testing.T) {
	c := new(counted)
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{
		ClientIP: core.ClientIP{TrustedProxies: []string{"192.0.2.1"}}, Authorize: c.authorize,
	})
	call := func(address, role string) int {
		r := httptest.NewRequest(http.MethodGet, "/limits/", nil)
		r.Header.Set("X-Forwarded-For", address)
		return as(t, role, page).do(r).StatusCode
	}
	for range 50 {
		if status := call("203.0.113.1", "viewer"); status != http.StatusOK {
			t.Fatalf("an authorized request gets status %d", status)
		}
	}
	for i := range 30 {
		if status := call("203.0.113.1", "stranger"); status != http.StatusForbidden {
			t.Fatalf("request %d gets status %d", i, status)
		}
	}
	before := c.calls.Load()
	for _, role := range []string{"stranger", "operator"} {
		if status := call("203.0.113.1", role); status != http.StatusTooManyRequests || c.calls.Load() != before {
			t.Errorf("after 30 strangers, %q gets status %d, and the authorizer was called %d times", role, status, c.calls.Load()-before)
		}
	}
	if status := call("203.0.113.2", "viewer"); status != http.StatusOK {
		t.Errorf("another address gets status %d", status)
	}
}

// atOnce makes requests of one address, and returns how many got each status. All of them are there
// before the authorizer answers the first one.
func atOnce(t *testing.T, role string, requests int) (statuses map[int]int, authorized int64) {
	t.Helper()
	c, answer := new(counted), make(chan struct{})
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{Authorize: func(r *http.Request) (console.Identity, error) {
		<-answer
		return c.authorize(r)
	}})
	got := make([]int, requests)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = as(t, role, page).get("style.css").StatusCode })
	}
	synctest.Wait()
	close(answer)
	all.Wait()
	statuses = make(map[int]int)
	for _, status := range got {
		statuses[status]++
	}
	return statuses, c.calls.Load()
}

// Nobody can try more tokens by trying them at once, and people who are authorized do not lock each other out,
// however long that takes.
func TestRequestsAtOnce(t *testing.T) {
	for _, test := range []struct {
		role               string
		requests, most     int // most reach the authorizer
		status, thenStatus int
	}{
		{"viewer", 60, 60, http.StatusOK, 0},
		{"stranger", 100, 30, http.StatusForbidden, http.StatusTooManyRequests},
	} {
		synctest.Test(t, func(t *testing.T) {
			statuses, calls := atOnce(t, test.role, test.requests)
			if statuses[test.status] != test.most || statuses[test.thenStatus] != test.requests-test.most || calls != int64(test.most) {
				t.Errorf("%d requests by a %s at once get the statuses %v, of which %d reach the authorizer", test.requests, test.role, statuses, calls)
			}
		})
	}
}

// A site that somebody opens can make the browser send requests without credentials. Over plain HTTP,
// nothing in them tells where they come from, and over HTTPS they may follow a link. They lock out
// nobody, neither those who are logged in nor those who are about to.
func TestRequestsWithoutCredentialsLockOutNobody(t *testing.T) {
	c := new(counted)
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{Authorize: c.authorize, Challenge: `Basic realm="limits"`})
	plain := []string{"Accept: */*", "User-Agent: Mozilla/5.0", "Accept-Language: en", "Range: bytes=0-1", "X-Forwarded-Proto: http"}
	link := append(slices.Clip(plain), "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", "Sec-Ch-Ua-Mobile: ?0")
	send := func(headers []string) answer {
		r := httptest.NewRequest(http.MethodGet, "/limits/", nil)
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			r.Header.Set(name, value)
		}
		return as(t, "", page).do(r)
	}
	for i := range 80 {
		if got := send([][]string{plain, link}[i%2]); got.StatusCode != http.StatusUnauthorized || got.Header.Get("WWW-Authenticate") == "" {
			t.Fatalf("request %d gets status %d", i, got.StatusCode)
		}
	}
	if calls := c.calls.Load(); calls != 30 {
		t.Errorf("the authorizer was called %d times, want 30", calls)
	}
	if got := as(t, "operator", page).get(""); got.StatusCode != http.StatusOK {
		t.Errorf("then an operator gets status %d: %s", got.StatusCode, got.body)
	}
}

// Whatever a stranger writes into the headers by which browsers tell of other sites, and whatever
// else is sent, a minute has room for 30 tokens.
func TestForgedHeadersGiveNoFurtherAttempts(t *testing.T) {
	c := new(counted)
	page := newPage(t, newLimiter(t, core.Options{}), console.Options{Authorize: c.authorize})
	forged := []map[string]string{
		{}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, {"Sec-Fetch-Site": "same-origin"},
		{"Origin": "http://example.com"}, {"Origin": "null"}, {"Sec-Fetch-Site": "none"}, {"Cookie": "a=b"}, {"Sec-Fetch-Site": "cross-site"},
	}
	for i := range 240 {
		r := httptest.NewRequest(http.MethodGet, "/limits/", nil)
		for name, value := range forged[i%len(forged)] {
			r.Header.Set(name, value)
		}
		as(t, fmt.Sprint("token ", i), page).do(r)
	}
	if calls := c.calls.Load(); calls != 30 {
		t.Errorf("%d tokens were tried, want 30", calls)
	}
}

// Requests that another site made a browser send never reach the authorizer, unless they follow a
// link, and lock out nobody.
func TestOtherSitesLockOutNobody(t *testing.T) {
	for name, from := range map[string][2]string{
		"cross-site": {"Sec-Fetch-Site", "cross-site"}, "sibling": {"Sec-Fetch-Site", "same-site"},
		"plain HTTP": {"Origin", "http://evil.example"}, "opaque origin": {"Origin", "null"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
			t.Run(name+" "+method, func(t *testing.T) {
				c := new(counted)
				page := newPage(t, newLimiter(t, core.Options{}), console.Options{Authorize: c.authorize})
				for i := range 40 {
					r := httptest.NewRequest(method, "/limits/ban", strings.NewReader("rule=api"))
					r.Header.Set(from[0], from[1])
					if got := as(t, "operator", page).do(r); got.StatusCode != http.StatusForbidden || c.calls.Load() > 0 {
						t.Fatalf("request %d gets status %d, and the authorizer was called %d times", i, got.StatusCode, c.calls.Load())
					}
				}
				for _, site := range []string{"", "none", "same-origin"} {
					r := httptest.NewRequest(http.MethodGet, "/limits/", nil)
					if site != "" {
						r.Header.Set("Sec-Fetch-Site", site)
					}
					if got := as(t, "operator", page).do(r); got.StatusCode != http.StatusOK {
						t.Errorf("then an operator, from the site %q, gets status %d: %s", site, got.StatusCode, got.body)
					}
				}
			})
		}
	}
}

// Another site writes nothing into the audit under the name of somebody who opens it, and does not use
// up the room for that person's own forbidden acts.
func TestOtherSitesWriteNothingIntoTheAudit(t *testing.T) {
	onBothEngines(t, func(t *testing.T, limiter *core.Limiter) {
		viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
		for name, from := range map[string][2]string{
			"cross-site": {"Sec-Fetch-Site", "cross-site"}, "sibling": {"Sec-Fetch-Site", "same-site"}, "typed": {"Sec-Fetch-Site", "none"},
			"plain HTTP": {"Origin", "http://evil.example"}, "opaque origin": {"Origin", "null"}, "old browser": {"X-Nothing", "x"},
		} {
			for range 10 {
				form := viewer.form("ban", fields("rule", "api", "subject", "user:victim", "note", "by "+name, "token", "none"))
				replace(form, from[0], from[1])
				if got := viewer.do(form); got.StatusCode != http.StatusForbidden {
					t.Errorf("%s: status %d: %s", name, got.StatusCode, got.body)
				}
			}
		}
		viewer.send("ban", http.StatusForbidden, fields("rule", "api", "subject", "user:bob", "note", "mine", "token", "none"))
		if entries := audit(t, limiter); len(entries) != 1 || entries[0].Note != "mine" {
			t.Errorf("the audit is %+v", entries)
		}
	})
}
