package adaptertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// firstScenarios are about headers, cookies and parameters that a caller sends more than once or in
// odd forms. A rule must be shown what handlers get. Otherwise a caller could be one subject for
// the handler and many for the rule.
var firstScenarios = []scenario{
	{name: "a further line makes no other subject", run: furtherLines},
	{name: "a further cookie or parameter makes no other subject", run: furtherValues, httpOnly: true},
	{name: "another spelling of a path parameter makes no other subject", run: spelledParameters, httpOnly: true},
	{name: "rules are shown the headers that handlers get", run: sameHeaders},
	{name: "rules are shown the cookies and parameters that handlers get", run: sameValues, httpOnly: true},
}

// furtherLines checks that ByHeader counts by the first line.
func furtherLines(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", limits: limit(once(core.ByHeader("X-Key")))}}})
	s.want(t, 200, "/shop/list", "X-Key: good")
	for i := range 5 {
		s.want(t, 429, "/shop/list", "X-Key: good", fmt.Sprint("X-Key: junk", i))
	}
	s.want(t, 200, "/shop/list", "X-Key: junk", "X-Key: good")
}

// furtherValues checks the same for a session in a cookie, and for ByQuery.
func furtherValues(t *testing.T, s *site) {
	limiter := s.limiter(t, identifiedBy(core.Cookie("session", verify)))
	s.serve(t, App{Limiter: limiter, Routes: []Route{
		{Path: "/shop/reply", limits: limit(core.Rule{Name: "reply", Seconds: 600, MaxCount: 1, NeedLogin: true})},
		{Path: "/shop/list", limits: limit(once(core.ByQuery("key")))},
	}})
	s.want(t, 200, "/shop/reply", "Cookie: session=alice-session")
	s.want(t, 429, "/shop/reply", "Cookie: session=alice-session; session=junk")
	s.want(t, 200, "/shop/list?key=good")
	s.want(t, 429, "/shop/list?key=good&key=junk")
}

// spelledParameters checks that ByParam counts by the decoded text, whether the framework decodes it or
// leaves that to the handler.
func spelledParameters(t *testing.T, s *site) {
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/users/{id}", limits: limit(once(core.ByParam("id")))}}})
	s.want(t, 200, "/users/a@b")
	for _, spelling := range []string{"%61@b", "a%40b", "a@%62", "%61%40%62"} {
		s.want(t, 429, "/users/"+spelling)
	}
	s.want(t, 200, "/users/a")
	s.want(t, 200, "/users/100%25")
	s.want(t, 429, "/users/%31%30%30%25")
}

// read holds the values that a rule is shown, or that the handler gets.
type read struct{ Header, Cookie, Query string }

// wantSame makes calls with each of these headers, and with each of these queries. A call that the
// server refuses does not matter: no handler gets it.
func (s *site) wantSame(t *testing.T, headers [][]string, queries []string) {
	t.Helper()
	var shown, got read
	key := func(r core.Request) (string, error) {
		first := strings.Join(r.Header("X-Key")[:min(1, len(r.Header("X-Key")))], "")
		shown = read{strings.Clone(first), strings.Clone(r.Cookie("key")), strings.Clone(r.Query("key"))}
		return "anybody", nil
	}
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{
		Path: "/shop/list", limits: limit(core.Rule{Name: "list", Seconds: 600, MaxCount: mostPermits, Key: key}),
		Handle: func(h Handling) {
			got = read{strings.Clone(h.Header("X-Key")), strings.Clone(h.Cookie("key")), strings.Clone(h.Query("key"))}
			h.Text("ok")
		},
	}}})
	for _, lines := range headers {
		if s.raw(t, "GET", "/shop/list", lines...); shown != got {
			t.Errorf("%q: the rule was shown %q, and the handler gets %q", lines, shown, got)
		}
	}
	for _, query := range queries {
		if s.raw(t, "GET", "/shop/list?"+query); shown != got {
			t.Errorf("%q: the rule was shown %q, and the handler gets %q", query, shown, got)
		}
	}
	if (shown == read{}) {
		t.Error("the rule was shown nothing of the last call")
	}
}

func sameHeaders(t *testing.T, s *site) {
	s.wantSame(t, [][]string{
		{"X-Key: good", "X-Key: junk"}, {"X-Key: ", "X-Key: junk"}, {"X-Key: good", "X-Key: "}, {"X-Key: good, junk"},
		{"x-key: good", "X-Key: junk"}, {"X-KEY: good", "x-key: junk"}, {"X_Key: junk", "X-Key: good"}, {"X-Key:   good "},
	}, nil)
}

func sameValues(t *testing.T, s *site) {
	var headers [][]string
	for _, cookies := range oddCookies {
		headers = append(headers, []string{"Cookie: " + cookies})
	}
	headers = append(headers, []string{"Cookie: key=good", "Cookie: key=junk"}, []string{"Cookie: a=b", "Cookie: key=good"},
		[]string{"Transfer-Encoding: chunked", "X-Key: junk", "X-Key: good\r\n\r\n0"},
		[]string{"Transfer-Encoding: chunked", "Cookie: key=junk", "Cookie: key=good\r\n\r\n0"})
	s.wantSame(t, headers, oddQueries)
}

// oddCookies are cookies that frameworks read differently.
var oddCookies = []string{
	"key=good; key=junk", "key=good;key=junk", "key=; key=good", "key; key=good", "Key=junk; key=good", ";;key=good", "=junk; key=good",
	" key=good", "key= good", "key=good ;", "key =good", "key\t=good", "key=\tgood", "key=a b", "key=a\tb; key=good", "a b=c; key=good",
	`key="good"`, `key="a b"`, `key="good`, `key=""good""`, `key=""; key=good`, `key=a"b; key=good`, `key=\; key=good`,
	"key=%67ood", "key=go+od", "key=%zz", "key=a,b", "key=a=b", "key==good", "key=\xff; key=good",
}

// oddQueries are queries that frameworks read differently.
var oddQueries = []string{
	"key=good&key=junk", "key=&key=good", "key&key=good", "KEY=junk&key=good", "&&key=good", "=junk&key=good", "key==good",
	"key=a;key=good", "a=b;key=good&key=junk", "key=%67ood", "%6bey=good&key=junk", "key=%zz&key=good", "key=good%",
	"key=a+b", "key=a%20b", "key+=junk&key=good", "key=%00", "key%00=junk&key=good", "key=%ff", "key[]=junk&key=good",
	"key=good#key=junk", "?key=good", "key=good?key=junk",
}
