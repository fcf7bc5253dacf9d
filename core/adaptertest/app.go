package adaptertest

import (
	"context"
	"slices"

	"github.com/accesslimit/accesslimit/core"
)

// App is a small service that Adapter.Serve serves with its framework.
type App struct {
	Limiter *core.Limiter
	// Before, if set, is a middleware in front of all others. It may replace the call's context.
	Before func(context.Context) context.Context
	// Values are put into the framework's own store, under these names, by a middleware that runs
	// first.
	Values map[string]string
	// Use are the middlewares of the whole router, each a list of rules, the outermost first.
	Use [][]core.Rule
	// Routes are the routes to serve. Any other path gets the framework's own 404.
	Routes []Route
}

// Enter adds Values to ctx, calls Before, and returns the result. It is for frameworks that keep
// their values in the context.
func (a App) Enter(ctx context.Context) context.Context {
	ctx = valued{ctx, a.Values}
	if a.Before != nil {
		ctx = a.Before(ctx)
	}
	return ctx
}

// valued is a context whose values have plain strings as keys, as in many applications.
type valued struct {
	context.Context
	values map[string]string
}

// Value implements context.Context.
func (v valued) Value(key any) any {
	if name, ok := key.(string); ok {
		if value, ok := v.values[name]; ok {
			return value
		}
	}
	return v.Context.Value(key)
}

// guard makes Guards of the limits of each route.
func (a *App) guard() {
	routes := slices.Clone(a.Routes) // a scenario may serve the same ones again
	for i, route := range routes {
		var guards []*core.Guard
		for _, rules := range route.limits {
			guards = append(guards, a.Limiter.MustGuard(rules...))
		}
		routes[i].Guards = append(guards, route.Guards...)
	}
	a.Routes = routes
}

// Route is one route of an App.
type Route struct {
	// Method is the HTTP method; "" is GET. "*" is every method that the framework can serve, even
	// a made-up one (Any, All). Several routes may have one path.
	Method string
	// Path is a pattern of net/http's ServeMux, without the method. A segment is a word or a
	// parameter {name}. The last segment may be {rest...}, which matches everything below.
	// FuzzPaths also uses one path that ends in a slash. An RPC's paths are /service/method.
	Path string
	// Guards are the middlewares of this route, the outermost first.
	Guards []*core.Guard
	// Recovers reports whether panics are recovered between the limits and the handler, by the
	// framework's own middleware if it has one.
	Recovers bool
	// Handle writes the reply; nil replies 200 "ok". Adapters call Route.Serve, which handles both
	// cases.
	Handle func(Handling)

	limits [][]core.Rule // become Guards, outside of the others
}

// Handling is what a handler can do with its call.
type Handling interface {
	// Context returns the context that the framework gives its handlers.
	Context() context.Context
	// Allow calls the adapter's Allow with a check of the app's limiter. After false the handler
	// writes nothing.
	Allow(check *core.Check, subject string) bool
	// OwnLimits replies with the adapter's OwnLimits. An RPC sends the OwnLimitsText of them.
	OwnLimits(guard *core.Guard)
	// Header, Cookie and Query return the first value of a header, a cookie and a query parameter,
	// as the framework's own getters do. An RPC is asked only for headers.
	Header(name string) string
	Cookie(name string) string
	Query(name string) string
	// Flush sends the header of the reply, with 200, before there is a body. It is called only if the
	// framework notices LeavingCallers, and not for an RPC.
	Flush()
	// Text replies 200 with a text and its Content-Length.
	Text(text string)
	// Reply ends the call with a status: 200, 201, 401, 404 or 500. An RPC replies with the
	// corresponding code.
	Reply(status int)
}

// Serve runs the route's handler.
func (r Route) Serve(h Handling) {
	if r.Handle == nil {
		h.Text("ok")
		return
	}
	r.Handle(h)
}

// Ending is a way for a call to end.
type Ending struct {
	Name string
	// Handle is the handler. In Adapter.Endings its argument has the type that the test passed to
	// Route.Serve, so it can reach the framework's own context.
	Handle func(Handling)
	// Outcome is what a rule's Count must receive: the HTTP status, or the code of an RPC.
	Outcome int
	// OtherOutcome is a second outcome that Count receives, such as the status that was sent before
	// a panic; 0 means none.
	OtherOutcome int
	// Sent is the outcome that the caller gets; 0 means the same as Outcome.
	Sent int
	// Recovers is Route.Recovers.
	Recovers bool
}
