package adaptertest

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// wrongAdapter is an adapter for net/http. Its value names the mistake that it makes; "" makes none.
type wrongAdapter string

func (a wrongAdapter) middleware(guard *core.Guard, inUse bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a == "no Check" {
			next.ServeHTTP(w, r)
			return
		}
		answer := guard.Check(view{a, w, r, inUse})
		if answer.Refusal != nil {
			a.refuse(w, answer.Refusal)
			if a != "no refusal" {
				return
			}
		}
		if answer.Context != nil && a != "Answer.Context" {
			r = r.WithContext(answer.Context)
		}
		if a == "no handler" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if a == "no Run" {
			next.ServeHTTP(w, r)
			return
		}
		watched, response := answer.Watch(w, r)
		if a != "no Finish" {
			defer response.Finish()
		}
		answer.Run(func() int {
			next.ServeHTTP(watched, r)
			return wrongly(a, "Run's outcome", 200, response.Status())
		})
	})
}

func (a wrongAdapter) refuse(w http.ResponseWriter, refusal *core.Refusal) {
	if a != "refusal's headers" {
		refusal.SetHeader(w.Header())
	}
	w.WriteHeader(wrongly(a, "refusal's Status", 200, refusal.Status))
	if a != "refusal's Body" {
		_, _ = w.Write(refusal.Body)
	}
}

// view is what the adapter shows, with one method wrong.
type view struct {
	wrongAdapter
	w     http.ResponseWriter
	r     *http.Request
	inUse bool
}

// wrongly returns wrong if what names the adapter's mistake, and otherwise right.
func wrongly[T any](a wrongAdapter, what string, wrong, right T) T {
	if string(a) == what {
		return wrong
	}
	return right
}

func (v view) Context() context.Context {
	return wrongly(v.wrongAdapter, "Context", context.Background(), v.r.Context())
}

func (v view) Method() string {
	return wrongly(v.wrongAdapter, "Method", strings.ToLower(v.r.Method), v.r.Method)
}

func (v view) Path() string { return wrongly(v.wrongAdapter, "Path", v.r.RequestURI, v.r.URL.Path) }

func (v view) Route() string {
	if v.inUse {
		return wrongly(v.wrongAdapter, "Route in Use", "/shown/{id}", "")
	}
	_, pattern, _ := strings.Cut(v.r.Pattern, " ")
	return wrongly(v.wrongAdapter, "Route", v.r.URL.Path, pattern)
}

func (v view) RemoteAddr() netip.Addr {
	return wrongly(v.wrongAdapter, "RemoteAddr", netip.Addr{}, adapter.PeerAddr(v.r.RemoteAddr))
}

func (v view) Header(name string) []string {
	lines := v.r.Header.Values(name)
	return wrongly(v.wrongAdapter, "Header", lines[:min(1, len(lines))], lines)
}

func (v view) Host() string { return wrongly(v.wrongAdapter, "Host", "", v.r.Host) }

func (v view) Query(name string) string {
	return wrongly(v.wrongAdapter, "Query", "", v.r.URL.Query().Get(name))
}

func (v view) Cookie(name string) string {
	return wrongly(v.wrongAdapter, "Cookie", "", HTTPHandling{Request: v.r}.Cookie(name))
}

func (v view) Param(name string) string {
	return wrongly(v.wrongAdapter, "Param", "", v.r.PathValue(name))
}

func (v view) Value(key any) any {
	if _, ok := key.(string); ok {
		return wrongly(v.wrongAdapter, "stored Value", nil, v.r.Context().Value(key))
	}
	return wrongly(v.wrongAdapter, "Value", nil, v.r.Context().Value(key))
}

func (v view) Size() int64 {
	if v.r.ContentLength < 0 {
		return wrongly(v.wrongAdapter, "unknown Size", 0, v.r.ContentLength)
	}
	return wrongly(v.wrongAdapter, "Size", -1, v.r.ContentLength)
}

func (v view) ResponseHeader() adapter.HeaderWriter {
	return wrongly(v.wrongAdapter, "ResponseHeader", make(http.Header), v.w.Header())
}

func (a wrongAdapter) serve(t testing.TB, l net.Listener, app App) (stop func()) {
	if a == "Serve blocks" {
		<-t.Context().Done()
		return func() {}
	}
	mux := http.NewServeMux()
	for _, route := range app.Routes {
		if route.Method == "" {
			route.Method = "GET"
		}
		var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			route.Serve(handling{HTTPHandling{w, r}, a})
		})
		for _, guard := range slices.Backward(route.Guards) {
			handler = a.middleware(guard, false, handler)
		}
		mux.Handle(route.Method+" "+route.Path, handler)
	}
	if a == "Serve's routes" {
		mux = http.NewServeMux()
	}
	limited := a.loosely(mux)
	for _, rules := range slices.Backward(app.Use) {
		limited = a.middleware(app.Limiter.MustGuard(rules...), true, limited)
	}
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a == "no reply" {
			<-r.Context().Done()
		}
		defer func() {
			if a != "no recovery" && recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		limited.ServeHTTP(w, r.WithContext(app.Enter(r.Context())))
	})}
	if a == "folded headers" {
		l = unfolded{l}
	}
	go func() { _ = server.Serve(l) }()
	return func() {
		_ = server.Close()
		if a == "stop blocks" {
			<-t.Context().Done()
		}
	}
}

// loosely makes the server accept other spellings of a path if the adapter's mistake is not to say
// so.
func (a wrongAdapter) loosely(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := r.Clone(r.Context())
		inner.URL.Path = wrongly(a, "anyCase", strings.ToLower(r.URL.Path), r.URL.Path)
		inner.URL.Path = wrongly(a, "anySlash", strings.TrimSuffix(inner.URL.Path, "/"), inner.URL.Path)
		next.ServeHTTP(w, inner)
	})
}

type handling struct {
	HTTPHandling
	a wrongAdapter
}

func (h handling) Allow(check *core.Check, subject string) bool {
	answer := check.Allow(view{h.a, h.Writer, h.Request, false}, subject)
	if answer.Refusal == nil {
		return true
	}
	h.a.refuse(h.Writer, answer.Refusal)
	return h.a == "Allow"
}

func (h handling) OwnLimits(guard *core.Guard) {
	own := guard.OwnLimits(view{h.a, h.Writer, h.Request, false})
	if h.a != "OwnLimits' headers" {
		own.SetHeader(h.Writer.Header())
	}
	status, _, body := own.Reply()
	h.Writer.WriteHeader(wrongly(h.a, "OwnLimits' status", 200, status))
	_, _ = h.Writer.Write(wrongly(h.a, "OwnLimits' body", nil, body))
}

// unfolded answers 400 to a request with a folded header.
type unfolded struct{ net.Listener }

func (l unfolded) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return unfoldedConn{conn}, err
}

type unfoldedConn struct{ net.Conn }

func (c unfoldedConn) Read(b []byte) (n int, err error) {
	if n, err = c.Conn.Read(b); bytes.Contains(b[:n], []byte("\n ")) || bytes.Contains(b[:n], []byte("\n\t")) {
		copy(b, "\r\n\r\n\r\n\r\n") // no request line
	}
	return n, err
}
