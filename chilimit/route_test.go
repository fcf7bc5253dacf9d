package chilimit_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/chilimit"
	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
)

// shown is what middlewares and handlers saw of one call.
type shown struct {
	limiter *core.Limiter
	routes  []string // by each middleware
	params  []string // of each middleware: the parameter a
	pattern string   // that chi has in the handler
	handler int      // 0 if none ran
}

func newShown(t testing.TB) *shown {
	return &shown{limiter: extensiontest.NewLimiter(t, core.Options{})}
}

// limit returns a middleware that notes the route.
func (s *shown) limit() func(http.Handler) http.Handler {
	return chilimit.New(s.limiter, core.Rule{Name: "shown", Seconds: 60, MaxCount: 1_000_000_000, Key: func(r core.Request) (string, error) {
		s.routes, s.params = append(s.routes, r.Route()), append(s.params, r.Param("a"))
		return "anybody", nil
	}})
}

// serve returns a handler that notes chi's own pattern.
func (s *shown) serve(number int) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		s.handler, s.pattern = number, chi.RouteContext(r.Context()).RoutePattern()
	}
}

// call makes a call, and returns the routes that the middlewares saw, each once if they agree.
func (s *shown) call(router http.Handler, method, path string) (routes []string) {
	s.routes, s.params, s.pattern, s.handler = nil, nil, "", 0
	router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
	return slices.Compact(slices.Clone(s.routes))
}

var (
	routePatterns = []string{"/", "/x", "/x/", "/{a}", "/{a}/x", "/{a:[a-z]+}-{b}", "/m", "/m/", "/m/x", "/x/*", "/*", "/{a}/*"}
	mountPatterns = []string{"/", "/m", "/n/", "/{c}/m", "/m/n", "/x/{d}"}
	pathParts     = []string{"/", "/x", "/m", "/n", "/mn", "/a-b", "/x%2fy", "/%20", "//", "/m/", "/*"}
)

// grow adds routes and routers to a router, and a limit at every place where a middleware can be.
func (s *shown) grow(t *rapid.T, router chi.Router, depth int, handlers *int) {
	router.Use(s.limit())
	s.addRoutes(t, router, routePatterns, handlers)
	if depth > 0 {
		s.addRouters(t, router, depth, handlers)
		s.addRoutes(t, router, []string{"/m", "/m/", "/n/", "/x", "/*", "/m/*", "/{c}/m/*"}, handlers) // in place of a mounted router's own path, or of all below
	}
}

func (s *shown) addRoutes(t *rapid.T, router chi.Router, patterns []string, handlers *int) {
	for _, pattern := range rapid.SliceOfN(rapid.SampledFrom(patterns), 0, 4).Draw(t, "routes") {
		method := rapid.SampledFrom([]string{"", "GET ", "GET ", "POST ", "HEAD "}).Draw(t, "method")
		*handlers++
		router.Group(func(r chi.Router) {
			r.Use(s.limit())
			r.With(s.limit()).Handle(method+pattern, s.serve(*handlers))
		})
	}
}

func (s *shown) addRouters(t *rapid.T, router chi.Router, depth int, handlers *int) {
	for _, pattern := range rapid.SliceOfNDistinct(rapid.SampledFrom(mountPatterns), 0, 3, rapid.ID).Draw(t, "mounts") {
		below := chi.NewRouter()
		s.grow(t, below, depth-1, handlers)
		mount(router.With(s.limit()), pattern, below)
	}
}

// mount mounts a router, unless chi has another route there.
func mount(router chi.Router, pattern string, below chi.Router) {
	defer func() { _ = recover() }()
	router.Mount(pattern, below)
}

// Wherever a middleware is, it sees the pattern that chi has in the handler, and the only one by which
// the handler is called.
func TestRouteIsChis(t *testing.T) {
	s := newShown(t)
	rapid.Check(t, func(t *rapid.T) {
		router, handlers := chi.NewRouter(), 0
		if rapid.Bool().Draw(t, "changes") {
			router.Use(middleware.CleanPath, middleware.StripSlashes, middleware.GetHead)
		}
		s.grow(t, router, 3, &handlers)
		router.Get("/last", s.serve(-1)) // a router without any route has no middlewares
		counted := make(map[int]string)
		for range 20 {
			path := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pathParts), 1, 4).Draw(t, "path"), "")
			method := rapid.SampledFrom([]string{"GET", "GET", "POST", "HEAD", "QUERY", "MADEUP"}).Draw(t, "method")
			saw, want := s.call(router, method, path), strings.ReplaceAll(s.pattern, "//", "/")
			if s.handler == 0 && method == "HEAD" {
				continue // a HEAD that chi does not answer may count as the GET
			}
			if !slices.Equal(saw, []string{want}) {
				t.Fatalf("%s %s: the middlewares saw %q, want %q", method, path, saw, want)
			}
			if known, again := counted[s.handler]; s.handler != 0 && again && known != want {
				t.Fatalf("%s %s: the handler is called by %q, and by %q", method, path, known, want)
			}
			counted[s.handler] = want
		}
	})
}

// brewGets routes BREW as GET.
func brewGets(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "BREW" {
			chi.RouteContext(r.Context()).RouteMethod = "GET"
		}
		next.ServeHTTP(w, r)
	})
}

// Places of a limit that services have.
func TestRoutes(t *testing.T) {
	s := newShown(t)
	router := chi.NewRouter()
	router.Use(brewGets, s.limit())
	router.Get("/users/{a}", s.serve(1))
	router.Route("/api/{a}", func(r chi.Router) {
		r.Use(s.limit())
		r.Get("/", s.serve(2))
		r.With(s.limit()).Post("/items/{b}", s.serve(3))
	})
	files := chi.NewRouter()
	files.Use(middleware.GetHead)
	files.Get("/*", s.serve(4))
	router.Mount("/files", files)
	router.Get("/page", s.serve(5))
	below := chi.NewRouter()
	below.Get("/in/{a}", s.serve(7))
	below.Post("/in/{a}", s.serve(8))
	router.Mount("/both/{b}", below)
	router.Get("/both/{b}/*", s.serve(9))
	router.Mount("/other", http.StripPrefix("/other", http.HandlerFunc(s.serve(6))))
	for _, test := range []struct{ call, route, param string }{
		{"GET /users/7", "/users/{a}", "7"}, {"HEAD /users/7", "/users/{a}", "7"}, {"BREW /users/7", "/users/{a}", "7"}, {"POST /users/7", "", ""},
		{"GET /api/7", "/api/{a}", "7"}, {"GET /api/7/", "/api/{a}", "7"}, {"POST /api/7/items/8", "/api/{a}/items/{b}", "7"},
		{"GET /api/7/items/8", "", ""}, {"GET /api/7/none", "", ""}, {"GET /none", "", ""},
		{"GET /files", "/files/*", ""}, {"GET /files/", "/files/*", ""}, {"HEAD /files/a/b", "/files/*", ""},
		{"GET /both/1/in/7", "/both/{b}/*", ""}, {"GET /both/1/none", "/both/{b}/*", ""}, {"POST /both/1/in/7", "/both/{b}/in/{a}", "7"}, {"POST /both/1/none", "", ""},
		{"GET /other", "/other", ""}, {"GET /other/a", "/other/*", ""},
	} {
		method, path, _ := strings.Cut(test.call, " ")
		saw := s.call(router, method, path)
		if params := slices.Compact(s.params); !slices.Equal(saw, []string{test.route}) || !slices.Equal(params, []string{test.param}) {
			t.Errorf("%s: saw %q and %q, want %q and %q", test.call, saw, params, test.route, test.param)
		}
	}
}

// A rule counts a call by the method that chi routes, whichever the client sent, so that no call has a
// second counter or none. A HEAD that is routed as a GET is still one.
func TestAMethodThatAMiddlewareChanges(t *testing.T) {
	for name, test := range map[string]struct {
		methods []string
		call    string
		want    int // of the second call, beyond the limit if the rule applies
	}{
		"a rule for the method that is routed": {[]string{"GET"}, "BREW", http.StatusTooManyRequests},
		"a rule for the method that was sent":  {[]string{"BREW"}, "BREW", http.StatusOK},
		"a counter for each route":             {nil, "BREW", http.StatusTooManyRequests},
		"a rule for HEAD":                      {[]string{"HEAD"}, "HEAD", http.StatusTooManyRequests},
	} {
		for where, place := range map[string]func(chi.Router, func(http.Handler) http.Handler) chi.Router{
			"in Use":     func(r chi.Router, limit func(http.Handler) http.Handler) chi.Router { r.Use(limit); return r },
			"at a route": func(r chi.Router, limit func(http.Handler) http.Handler) chi.Router { return r.With(limit) },
		} {
			router := chi.NewRouter()
			router.Use(brewGets, middleware.GetHead)
			limit := chilimit.New(newShown(t).limiter, core.Rule{Methods: test.methods, Seconds: 60, MaxCount: 1})
			place(router, limit).Get("/x", func(http.ResponseWriter, *http.Request) {})
			first := "GET"
			if test.call == "HEAD" {
				first = test.call
			}
			serveStatus(router, first)
			if got := serveStatus(router, test.call); got != test.want {
				t.Errorf("%s, %s: status %d, want %d", name, where, got, test.want)
			}
		}
	}
}

// serveStatus returns the status of a call of /x.
func serveStatus(router http.Handler, method string) int {
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest(method, "/x", nil))
	return w.Code
}

// A middleware in two routers sees the routes of both, and around a router it sees none.
func TestRoutesOfTwoRouters(t *testing.T) {
	s := newShown(t)
	limit := s.limit()
	one, two := chi.NewRouter(), chi.NewRouter()
	one.Use(limit)
	one.Get("/{a}", s.serve(1))
	two.Use(limit)
	two.Get("/*", s.serve(2))
	for range 2 {
		for want, router := range map[string]http.Handler{"/{a}": one, "/*": two, "": limit(chi.NewRouter())} {
			if saw := s.call(router, "GET", "/x"); !slices.Equal(saw, []string{want}) {
				t.Errorf("saw %q, want %q", saw, want)
			}
		}
	}
}
