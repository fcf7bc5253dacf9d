package driver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// request returns the request of a call.
func (h *history) request(o operation, path string) *http.Request {
	c := o.choice
	if path == "" {
		path = fmt.Sprintf("/%c/%d?q=%d", 'a'+c%routes, c/4%2, c/8%2)
	}
	r := httptest.NewRequest([...]string{"GET", "POST", "HEAD"}[c/16%3], path, http.NoBody)
	r.RemoteAddr = [...]string{"203.0.113.7:1", "198.51.100.9:1", "192.0.2.1:1"}[o.subject]
	header := func(name string, value string) {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	user := [...]string{"alice", "bob", "", "alice", "alice", "bob", "", "unsure"}[c/48%8]
	if o.n == free && user == "unsure" { // the older version asks in more cases than the newer one
		user = ""
	}
	header("X-User", user)
	header("X-Plan", [...]string{"", "free", "pro", "all", "free", "pro", "none"}[c/384%7])
	header("X-Limit", [...]string{"0", "1", "2"}[c/2688%3])
	header("X-Tenant", [...]string{"", "acme"}[c/8064%2])
	header("X-Forwarded-For", [...]string{"", "203.0.113.7"}[c/16128%2])
	if c%11 == 0 {
		header("X-Skip", "1")
	}
	if o.n > 1 {
		header("X-Cost", fmt.Sprint(o.n-free))
	}
	return r
}

// free is the n of an operation whose call costs nothing.
const free = 2

type callKey struct{}

// call sends a request through the middlewares of its route.
func (h *history) call(p *process, o operation) {
	w, r := httptest.NewRecorder(), h.request(o, "")
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, o))
	if o.choice%97 == 0 {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		r = r.WithContext(ctx)
	}
	end := make(chan struct{})
	if h.ends[o.id] = end; o.span%3 > 0 {
		close(end)
		delete(h.ends, o.id)
	}
	go func() {
		p.routes.ServeHTTP(w, r)
		h.notef("call %d", o.id)
		h.reply(w)
	}()
}

// handle is the handler of all routes.
func (h *history) handle(p *process, w http.ResponseWriter, r *http.Request) {
	o := r.Context().Value(callKey{}).(operation)
	if d, ok := core.DecisionFrom(r.Context()); ok {
		h.notef("decision %s", show(d))
	}
	if user, ok := core.UserFrom(r.Context()); ok {
		h.notef("user %s", user)
	}
	if o.choice%5 == 0 {
		if o.choice%10 == 0 && len(h.settled) > 0 {
			ctx, err := withEstimates(r.Context(), p.check, h.settled[len(h.settled)-1], o.n)
			h.notef("estimates %s", showError(err))
			r = r.WithContext(ctx)
		}
		if !nethttplimit.Allow(w, r, p.check, [...]string{"", subject(o.subject)}[o.choice%2]) {
			return
		}
		awaitDryRuns(p.limiter)
	}
	h.mu.Lock()
	end := h.ends[o.id]
	h.mu.Unlock()
	if end != nil {
		<-end
	}
	if len(h.settled) > 0 && o.choice%3 > 0 {
		name := h.settled[o.choice/3%len(h.settled)]
		h.notef("settle %s %s", name, showError(settle(r.Context(), name, o.n)))
	}
	w.WriteHeader([...]int{200, 200, 404, 500}[o.choice/7%4])
}

// reply notes a reply.
func (h *history) reply(w *httptest.ResponseRecorder) {
	body, _ := io.ReadAll(w.Result().Body)
	h.notef("%d %s %s", w.Code, showHeaders(w.Header()), body)
}
