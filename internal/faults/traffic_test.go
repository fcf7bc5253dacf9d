package faults_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// traffic is the calls that clients made to the example.
type traffic struct {
	t        *testing.T
	url      string
	restarts int
	took     time.Duration
	calls    atomic.Int64
	passed   [3]atomic.Int64 // calls of each kind that were let in
	counted  [3]atomic.Int64 // those of them that were counted
	refused  [3]atomic.Int64 // calls of each kind that were refused
	fresh    atomic.Int64
}

// The kinds of calls whose callers are always the same, with the names of their rules, and their
// limits.
var kinds = [3]struct {
	method, path, client, rule string
	limit                      int
	span                       time.Duration
}{
	{http.MethodGet, "/", "203.0.113.1", "api", 100, time.Second},
	{http.MethodGet, "/fixed", "203.0.113.2", "GET /fixed", 4, 5 * time.Second},
	{http.MethodPost, "/reply", "203.0.113.3", "POST /reply", 5, time.Minute},
}

// run makes 64 clients call as fast as they can for this span, while happens runs.
func (l *traffic) run(span time.Duration, happens func()) {
	l.t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	client := &http.Client{Transport: transport, Timeout: patience}
	defer transport.CloseIdleConnections()
	begin := time.Now()
	var event sync.WaitGroup
	event.Go(happens)
	together(64, func(i int) {
		for n := 0; time.Since(begin) < span && !l.t.Failed(); n++ {
			l.call(client, (i+n)%4)
		}
	})
	event.Wait()
	l.took += time.Since(begin)
}

// call makes a call of a kind, or one by a new client.
func (l *traffic) call(client *http.Client, kind int) {
	method, path, from := http.MethodGet, "/", ""
	if kind < len(kinds) {
		method, path, from = kinds[kind].method, kinds[kind].path, kinds[kind].client
	} else {
		n := l.fresh.Add(1)
		from = fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)
	}
	request, err := http.NewRequest(method, l.url+path, nil)
	if err != nil {
		l.t.Error(err)
		return
	}
	request.Header.Set("X-Forwarded-For", from)
	request.Header.Set("Authorization", "Bearer alice-token")
	response, err := client.Do(request)
	if err != nil {
		l.t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	l.calls.Add(1)
	limits := response.Header.Values("RateLimit") // without the rules that did not count, because Redis was down
	switch {
	case response.StatusCode != http.StatusOK && response.StatusCode != http.StatusTooManyRequests:
		l.t.Errorf("%s %s: status %d", method, path, response.StatusCode)
	case kind == len(kinds) && response.StatusCode != http.StatusOK:
		l.t.Errorf("a new caller is refused: %s", limits)
	case kind == len(kinds):
	case response.StatusCode != http.StatusOK:
		l.refused[kind].Add(1)
	default:
		l.passed[kind].Add(1)
		if names(limits, kinds[kind].rule) {
			l.counted[kind].Add(1)
		}
	}
}

// names reports whether one of the limits, as the header RateLimit has them, is that of a rule.
func names(limits []string, rule string) bool {
	return slices.ContainsFunc(limits, func(limit string) bool { return strings.HasPrefix(limit, strconv.Quote(rule)+";") })
}

// wantRightAdmissions checks that no more were let in than the limits and the lives of Redis allow, and
// that nobody was refused before a limit was used up. Redis may have counted a call that was let in
// because the reply came too late.
func (l *traffic) wantRightAdmissions() {
	l.t.Helper()
	for i, kind := range kinds {
		spans := int(l.took/kind.span) + 2 // at both ends, one that is not full
		most := kind.limit * (spans + l.restarts)
		passed, counted, refused := int(l.passed[i].Load()), int(l.counted[i].Load()), l.refused[i].Load()
		if counted > most || refused > 0 && passed < kind.limit {
			l.t.Errorf("%s %s: %d let in, %d of them counted, %d refused: want at least %d let in before one is refused, and at most %d counted",
				kind.method, kind.path, passed, counted, refused, kind.limit, most)
		}
	}
}
