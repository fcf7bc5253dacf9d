package rulefile

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// process is a process of a fleet: a Limiter, a Set that follows a document, and a handler with its
// rule api.
type process struct {
	t       testing.TB
	limiter *core.Limiter
	set     *Set
	handler http.Handler
	log     *logtest.Log
}

// start starts a process. Its counters are its own, because only its rules are the subject.
func start(t testing.TB, document *Document, fallback ...Fallback) *process {
	t.Helper()
	p := &process{t: t, log: new(logtest.Log)}
	var err error
	p.limiter, err = core.New(core.Options{Logger: p.log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, p.limiter.Close)
	if p.set, err = Follow(p.limiter, registered, document, fallback...); err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, p.set.Close)
	p.handler = nethttplimit.With(p.set.MustGuard("api"))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return p
}

// policy calls the service and returns the limit that the answer names, such as 5 for 5/h.
func (p *process) policy() (limit int) {
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if _, err := fmt.Sscanf(w.Header().Get("RateLimit-Policy"), `"api";q=%d;w=3600`, &limit); err != nil {
		p.t.Errorf("answered %v: %v", w.Header(), err)
	}
	return limit
}

// await waits until something is so.
func await(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !redistest.WaitUntil(is, 2*patient) {
		t.Fatalf("after %v: %s", 2*patient, what)
	}
}

// await waits until calls are decided by a limit, and the Stats show an error with these words, or
// none.
func (p *process) await(limit int, words string) {
	p.t.Helper()
	redistest.WaitUntil(func() bool { return p.policy() == limit && p.has(words) }, patient)
	if got := p.policy(); got != limit || !p.has(words) {
		p.t.Fatalf("calls are decided by %d/h, want %d/h; the Stats have %+v, want an error with %q", got, limit, p.stats(), words)
	}
}

func (p *process) stats() core.RuleSetStats { return p.limiter.Stats().RuleSets[0] }

// has reports whether the Stats show an error with these words, or none if there are no words.
func (p *process) has(words string) bool {
	found := p.stats().LastError
	return strings.Contains(found, words) && (found == "") == (words == "")
}

// stays fails unless calls are decided by this limit while the document is looked at some times.
func (p *process) stays(limit int, looks func() int) {
	p.t.Helper()
	for end := looks() + 5; looks() < end; {
		if got := p.policy(); got != limit {
			p.t.Fatalf("calls are decided by %d/h, want %d/h still", got, limit)
		}
	}
}

func perHour(n int) string { return limitText(fmt.Sprintf("%d/h", n)) }

// fallback is a rule in Go of 1/h.
func fallback() Fallback { return Rules(core.Rule{Name: "api", Limit: core.PerHour(1)}) }
