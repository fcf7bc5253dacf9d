package limittest

import (
	"context"

	"github.com/accesslimit/accesslimit/core"
)

// App is a small service in no framework's words.
type App struct {
	Limiter *core.Limiter
	// Before, when set, is a middleware in front of all others: it may replace the call's context.
	Before func(context.Context) context.Context
	// Values are left by a middleware in front in the framework's own store, under these names.
	Values map[string]string
	// Use are the limits of the whole router, each list a middleware, the outermost first.
	Use [][]core.Rule
	// Routes are what is served. Everything else is the framework's own 404.
	Routes []Route
}

// Enter is what a middleware in front does to the call's context, for a framework whose own store is the context.
func (a App) Enter(ctx context.Context) context.Context {
	ctx = valued{ctx, a.Values}
	if a.Before != nil {
		ctx = a.Before(ctx)
	}
	return ctx
}

// valued is a context with values under plain strings, as applications have them.
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

// Route is one route of an App.
type Route struct {
	Method string // GET unless set
	// Path is /word/word, or with a parameter /word/{id}, or /word/{rest...} for all below, in the spelling of net/http.
	Path string
	// Limits of this route, each list a middleware, the outermost first.
	Limits [][]core.Rule
	// Recovers says that a recovery, the framework's own where it has one, stands between the limits and the handler.
	Recovers bool
	// Handle writes the reply; unless set it is 200 "ok".
	Handle func(Handling)
}

// Handling is what a handler may do with the call that it got.
type Handling interface {
	// Context is what the framework's handlers take as the call's context.
	Context() context.Context
	// Allow is the adapter's Allow, with the app's limiter. After false the handler must write nothing.
	Allow(rule core.Rule, subject string) bool
	// Text replies 200 with a text, whose length is declared before it.
	Text(text string)
	// Reply ends the call with a status: 200, 201, 401, 404 or 500; an RPC with the code that stands for it.
	Reply(status int)
}

// Serve runs what a route does.
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
	// Handle is the handler. In those of Adapter.Endings the Handling is the test's own type, and with it the framework's.
	Handle func(Handling)
	// Heard is what a rule's Count must hear: the HTTP status, or the code of an RPC.
	Heard int
	// Sent is what the caller gets; the same as Heard unless set.
	Sent int
	// Recovers is Route.Recovers.
	Recovers bool
}
