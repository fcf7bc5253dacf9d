package chilimit

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-chi/chi/v5"
)

// finder finds the routes of calls before chi does. A nil finder is for calls whose route chi has
// found.
type finder struct{ tree atomic.Pointer[tree] }

// tree is a router with those that are mounted in it. It lists the routes of each once, because that
// takes long, when the first call comes: then chi takes no further routes.
type tree struct {
	root  *chi.Mux
	lists sync.Map // from *chi.Mux to map[string]chi.Route, by pattern
}

// find returns the chi.Context of a call as it will be when the call has been routed. It is empty if
// there is no route, or no router of chi.
func (f *finder) find(r *http.Request) *chi.Context {
	now := chi.RouteContext(r.Context())
	if now == nil {
		return new(chi.Context)
	}
	root, _ := now.Routes.(*chi.Mux)
	if f == nil || root == nil {
		return now
	}
	t, method := f.under(root), cmp.Or(now.RouteMethod, r.Method)
	found := t.find(now, r, method)
	if found == nil && method == http.MethodHead { // perhaps middleware.GetHead is in a router below
		found = t.find(now, r, http.MethodGet)
	}
	if found == nil {
		return new(chi.Context)
	}
	return found
}

// under returns the tree of a router. One middleware is hardly ever under several.
func (f *finder) under(root *chi.Mux) *tree {
	t := f.tree.Load()
	if t == nil || t.root != root {
		t = &tree{root: root}
		f.tree.Store(t)
	}
	return t
}

// find returns the chi.Context of a call as it will be when a method has been routed, or nil if there
// is no route.
func (t *tree) find(now *chi.Context, r *http.Request, method string) *chi.Context {
	router := t.next(now.RoutePatterns, method)
	if router == nil {
		return now
	}
	found := &chi.Context{RoutePatterns: slices.Clone(now.RoutePatterns)}
	found.URLParams.Keys, found.URLParams.Values = slices.Clone(now.URLParams.Keys), slices.Clone(now.URLParams.Values)
	for path := rest(now, r); router != nil; path = "/" {
		patterns, params := len(found.RoutePatterns), len(found.URLParams.Keys)
		pattern := router.Find(found, method, path)
		switch {
		case t.stopAtRoute(router, found, patterns, params, method):
			return found
		case pattern == "":
			return nil
		}
		router = t.next(found.RoutePatterns, method) // of a mounted router's own path, which Find takes for a route
	}
	return found
}

// stopAtRoute reports whether Find came past a route with the pattern of a mounted router, such as
// Get("/*", h) after Mount("/", below). If so, it cuts what Find found behind the first such route:
// Find goes on into the mounted router, where chi serves only other methods. patterns and params
// are the numbers of those that were found before.
func (t *tree) stopAtRoute(router chi.Routes, found *chi.Context, patterns, params int, method string) bool {
	for n := patterns; n < len(found.RoutePatterns); n++ {
		here := t.list(router)[found.RoutePatterns[n]]
		if here.SubRoutes == nil {
			break
		}
		params += slices.Index(found.URLParams.Keys[params:], "*") + 1 // the last param of a mounted router's pattern
		if here.Handlers[method] != nil {
			found.RoutePatterns = found.RoutePatterns[:n+1]
			found.URLParams.Keys, found.URLParams.Values = found.URLParams.Keys[:params], found.URLParams.Values[:params]
			return true
		}
		router = here.SubRoutes
	}
	return false
}

// next returns the router that routes a call next, after routers that found these patterns, or nil if
// the last of these is a route.
func (t *tree) next(patterns []string, method string) (router chi.Routes) {
	router = t.root
	for _, p := range patterns {
		if router = t.mounted(router, p, method); router == nil {
			return nil
		}
	}
	return router
}

// mounted returns the router that is mounted in another at a pattern, or nil if the pattern is a
// route. A router that is mounted at /api gets calls by the patterns /api, /api/ and /api/*, of which
// chi lists the last one.
func (t *tree) mounted(router chi.Routes, pattern, method string) chi.Routes {
	list := t.list(router)
	if list[pattern].Handlers[method] != nil {
		return nil
	}
	return list[strings.TrimSuffix(strings.TrimSuffix(pattern, "*"), "/")+"/*"].SubRoutes
}

// list returns the routes of a router by their patterns.
func (t *tree) list(router chi.Routes) map[string]chi.Route {
	mux, _ := router.(*chi.Mux) // another type may not be comparable
	if list, ok := t.lists.Load(mux); ok && mux != nil {
		return list.(map[string]chi.Route)
	}
	list := make(map[string]chi.Route)
	for _, route := range router.Routes() {
		list[route.Pattern] = route
	}
	if mux != nil {
		t.lists.Store(mux, list)
	}
	return list
}

// rest returns the path for the next router. chi leaves it in RoutePath, where middlewares may change
// it, but only when the router is entered: then the value of the wildcard is empty, and the request
// still has it.
func rest(now *chi.Context, r *http.Request) string {
	if n := len(now.RoutePatterns); n > 0 {
		below := now.URLParam("*")
		switch {
		case !strings.HasSuffix(now.RoutePatterns[n-1], "*"):
			return "/"
		case below != "" || r.PathValue("*") == "":
			return "/" + below
		}
	}
	return cmp.Or(now.RoutePath, r.URL.RawPath, r.URL.Path, "/")
}

// pattern returns the pattern of a route as chi does, but for a router that is mounted at /api and
// serves /* it is always /api/*, where chi says /api//* of calls to /api/. Callers could choose
// between them.
func pattern(found *chi.Context) string {
	return strings.ReplaceAll(found.RoutePattern(), "//", "/")
}
