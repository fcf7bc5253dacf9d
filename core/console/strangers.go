package console

import (
	"net/http"
	"strings"
	"sync"

	"github.com/accesslimit/accesslimit/core"
)

// strangers bounds how many requests of strangers from one address reach Authorize in a minute.
// While as many requests are undecided as the limit still allows, others wait for them. So a person
// with many requests is not refused, and nobody can try more tokens at once.
type strangers struct {
	guard *core.Guard

	mu      sync.Mutex
	waiting map[string]*undecided // by address
}

// undecided are the requests of an address that Authorize has not decided yet.
type undecided struct {
	requests int
	changed  chan struct{} // closed when one of them is decided
}

func newStrangers(own *core.Limiter, name string) *strangers {
	return &strangers{waiting: make(map[string]*undecided), guard: own.MustGuard(core.Rule{
		Name: name, Limit: core.PerMinute(maxStrangers),
		Count:   func(status int) bool { return status != http.StatusOK },
		Message: "Too many requests without authorization. Try again in a minute.",
	})}
}

// run calls authorize, which returns http.StatusOK unless the request comes from a stranger. If the
// address has had too many strangers, run returns a refusal instead. gone ends the wait for other
// requests.
func (s *strangers) run(v *view, gone, closed <-chan struct{}, authorize func() (status int)) *core.Refusal {
	for {
		answer, address, changed := s.check(v)
		if answer.Refusal == nil {
			defer s.leave(address)
			answer.Run(authorize)
			return nil
		}
		if changed == nil {
			return answer.Refusal
		}
		select {
		case <-changed:
		case <-gone:
			return answer.Refusal
		case <-closed:
			return answer.Refusal
		}
	}
}

// check checks a request. If only undecided requests of its address stand in the way, changed is
// closed when one of them is decided.
func (s *strangers) check(v *view) (answer core.Answer, address string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer = s.guard.Check(v)
	if answer.Refusal != nil {
		if of := s.waiting[answer.Refusal.Decision.Key]; of != nil {
			changed = of.changed
		}
		return answer, "", changed
	}
	d, _ := core.DecisionFrom(answer.Context)
	of := s.waiting[d.Key]
	if of == nil {
		of = &undecided{changed: make(chan struct{})}
		s.waiting[d.Key] = of
	}
	of.requests++
	return answer, d.Key, nil
}

// leave records that a request of an address was decided.
func (s *strangers) leave(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.waiting[address]
	close(of.changed)
	of.changed = make(chan struct{})
	if of.requests--; of.requests == 0 {
		delete(s.waiting, address)
	}
}

// plainHeaders are the headers that browsers and proxies send by themselves, or that a site may
// choose when it makes a browser send a request.
var plainHeaders = func() map[string]bool {
	plain := make(map[string]bool)
	for name := range strings.FieldsSeq(`Accept Accept-Charset Accept-Encoding Accept-Language Cache-Control Connection
		Content-Language Content-Length Content-Type Dnt Forwarded Host If-Modified-Since If-None-Match Keep-Alive Origin Pragma
		Priority Purpose Range Referer Save-Data Sec-Gpc Sec-Purpose Te Traceparent Tracestate Transfer-Encoding
		Upgrade-Insecure-Requests User-Agent Via X-Forwarded-For X-Forwarded-Host X-Forwarded-Port X-Forwarded-Proto
		X-Forwarded-Server X-Real-Ip X-Request-Id`) {
		plain[name] = true
	}
	return plain
}()

// isBare reports whether a request has nothing that could be a credential: no cookie, no
// certificate, and only plain headers. Such a request does not try a token, and any site can make a
// browser send it.
func (h *Handler) isBare(r *http.Request) bool {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return false
	}
	for name := range r.Header {
		plain := plainHeaders[name] || strings.HasPrefix(name, "Sec-Fetch-") || strings.HasPrefix(name, "Sec-Ch-")
		if !plain && !strings.EqualFold(name, h.options.ClientIP.Header) {
			return false
		}
	}
	return true
}
