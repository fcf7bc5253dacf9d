package nethttplimit_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/frameworks"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{Serve: serve, Endings: endings})
}

// TestAroundAnotherMiddleware runs the adapter's tests where it cannot ask the mux for the route.
func TestAroundAnotherMiddleware(t *testing.T) {
	adaptertest.RunPaths(t, adaptertest.Adapter{
		Cannot: map[adaptertest.Feature]string{adaptertest.RouteInUse: "a mux inside another handler cannot be asked"},
		Serve: serveWith(func(mux http.Handler) http.Handler {
			return http.HandlerFunc(mux.ServeHTTP)
		}),
	})
}

func serve(t testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
	return serveWith(func(mux http.Handler) http.Handler { return mux })(t, l, app)
}

func serveWith(around func(mux http.Handler) http.Handler) func(testing.TB, net.Listener, adaptertest.App) (stop func()) {
	return func(_ testing.TB, l net.Listener, app adaptertest.App) (stop func()) {
		return adaptertest.ServeHTTP(l, frameworks.NetHTTP(app, around))
	}
}

// endings are the ways for a call to end in net/http. The first status that is written counts.
var endings = []adaptertest.Ending{
	ending("early hints, then 200", 200, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(200)
	}),
	ending("early hints, then 404", 404, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(404)
	}),
	ending("early hints alone", 200, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }),
	ending("Write, then 500", 200, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half of it"))
		w.WriteHeader(500)
	}),
	ending("an empty Write, then 500", 200, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(nil)
		w.WriteHeader(500)
	}),
	ending("WriteString, then 500", 200, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half of it")
		w.WriteHeader(500)
	}),
	ending("ReadFrom, then 500", 200, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("half of it"))
		w.WriteHeader(500)
	}),
	ending("an upstream that breaks off at once", 502, func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.Copy(w, iotest.ErrReader(errors.New("connection reset"))); err != nil {
			http.Error(w, "upstream", http.StatusBadGateway)
		}
	}),
	ending("an upstream that breaks off later", 200, func(w http.ResponseWriter, _ *http.Request) {
		broken := io.MultiReader(strings.NewReader("half of it"), iotest.ErrReader(errors.New("connection reset")))
		if _, err := io.Copy(w, broken); err != nil {
			http.Error(w, "upstream", http.StatusBadGateway)
		}
	}),
	ending("Flush, then 500", 200, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		w.WriteHeader(500)
	}),
	ending("a ResponseController's Flush, then 500", 200, func(w http.ResponseWriter, _ *http.Request) {
		if http.NewResponseController(w).Flush() == nil {
			w.WriteHeader(500)
		}
	}),
	ending("404, then 200", 404, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		w.WriteHeader(200)
	}),
	ending("304", 304, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }),
	ending("Redirect", 302, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }),
	ending("ServeContent", 200, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader("all of it"))
	}),
	ending("a TimeoutHandler", 503, func(w http.ResponseWriter, r *http.Request) {
		late := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		http.TimeoutHandler(late, time.Millisecond, "too late").ServeHTTP(w, r)
	}),
	ending("a status that is none, recovered inside", 500, func(w http.ResponseWriter, r *http.Request) {
		frameworks.Recovered(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(1000) })).ServeHTTP(w, r)
	}),
	hijacking("hijacked", 200, 204, func(http.ResponseWriter) {}),
	hijacking("switched, then hijacked", 101, 101, func(w http.ResponseWriter) { w.WriteHeader(http.StatusSwitchingProtocols) }),
	{Name: "a panic after half a reply", Outcome: 500, OtherOutcome: 200, Sent: 200, Handle: func(h adaptertest.Handling) {
		h.Text("half of it")
		panic("a handler's own fault")
	}},
}

func ending(name string, status int, handle http.HandlerFunc) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: status, Handle: func(h adaptertest.Handling) {
		handle(h.(frameworks.HTTPHandling).Writer, h.(frameworks.HTTPHandling).Request)
	}}
}

// hijacking ends a call with an answer written by hand, which the server does not see, and then a
// status that comes too late.
func hijacking(name string, outcome, sent int, first func(http.ResponseWriter)) adaptertest.Ending {
	return adaptertest.Ending{Name: name, Outcome: outcome, Sent: sent, Handle: func(h adaptertest.Handling) {
		w := h.(frameworks.HTTPHandling).Writer
		first(w)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
		w.WriteHeader(500)
	}}
}

// FuzzPaths tries paths on a *http.ServeMux, which the adapter asks for the route, and on a router
// that it cannot ask.
func FuzzPaths(f *testing.F) {
	adaptertest.FuzzPaths(f,
		adaptertest.Adapter{Serve: serve},
		adaptertest.Adapter{Serve: serveWith(func(mux http.Handler) http.Handler { return http.HandlerFunc(mux.ServeHTTP) })},
	)
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
