// Package ginlimit attaches access limits to gin routes.
//
//	router.Use(ginlimit.New(limiter, core.Rule{Name: "api", Seconds: 1, MaxCount: 100}))
//	limit := core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}
//	router.POST("/reply", ginlimit.New(limiter, limit), reply)
//
// A rule without a Name counts each route of an engine by itself, by gin's full path. Redirects
// that gin answers before any middleware (a missing slash) are not counted. core.Options.ClientIP
// finds the client's address, not c.ClientIP().
//
// A rule with Count receives the status that gin sends: c.Writer.Status() when the handlers inside
// have returned, before a middleware around this one handles c.Errors. If the handlers chose none
// after the caller had left, it receives 200 and 499. A call ends, and frees its slot, when its
// handler returns.
package ginlimit

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// New returns a middleware for one route, a group or the whole router, which decides by these rules
// together. It panics with a *core.RuleError if a rule is wrong.
func New(limiter *core.Limiter, rules ...core.Rule) gin.HandlerFunc {
	return With(limiter.MustGuard(rules...))
}

// With returns a middleware that decides by a guard.
func With(guard *core.Guard) gin.HandlerFunc {
	return func(c *gin.Context) {
		answer := guard.Check(view{c})
		if carryOut(c, answer) && !answer.Final() {
			follow(c, answer)
		}
	}
}

// follow runs the handlers of a call whose outcome matters. For others, gin runs them.
func follow(c *gin.Context, answer core.Answer) {
	defer watch(c, answer)()
	answer.Run(func() (status int) {
		c.Next()
		return outcome(c.Writer)
	})
}

// watch lets the core follow what the handlers write. It returns a function to call when they have
// returned.
func watch(c *gin.Context, answer core.Answer) (finish func()) {
	own := c.Writer
	watched, response := answer.Watch(own, c.Request)
	if response == nil {
		return func() {}
	}
	inner := &writer{own, watched, response}
	c.Writer = inner
	return func() {
		// Otherwise a handler has put another writer around it, which may have something left to
		// write.
		if c.Writer == gin.ResponseWriter(inner) {
			c.Writer = own
		}
		response.Finish()
	}
}

// writer is gin's own writer, with the core following what is written.
type writer struct {
	gin.ResponseWriter
	watched  http.ResponseWriter
	response *adapter.Response
}

func (w *writer) Size() int                   { return w.ResponseWriter.Size() + w.response.Held() }
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// begin notes the status that gin is about to send. gin's WriteHeader only sets it, and it may change
// until the header is sent.
func (w *writer) begin() *writer {
	if !w.Written() {
		w.response.Sending(w.Status())
	}
	return w
}

func (w *writer) WriteHeaderNow()                   { w.begin().ResponseWriter.WriteHeaderNow() }
func (w *writer) Write(b []byte) (int, error)       { return w.begin().watched.Write(b) }
func (w *writer) WriteString(s string) (int, error) { return io.WriteString(w.begin().watched, s) }
func (w *writer) Flush()                            { w.begin().watched.(http.Flusher).Flush() }

// Hijack implements http.Hijacker.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.watched.(http.Hijacker).Hijack()
}

// outcome returns the status that the call ends with, or 0 if the handlers left it to gin.
func outcome(w gin.ResponseWriter) (status int) {
	if status = w.Status(); status == http.StatusOK && !w.Written() {
		return 0
	}
	return status
}

// Allow decides by a check inside a handler, for a subject that only the handler knows, such as the
// account in a login form. An empty subject keeps each rule's own key. Allow sets the headers. If
// it returns false, it has written the refusal too, and the handler must return.
func Allow(c *gin.Context, check *core.Check, subject string) bool {
	return carryOut(c, check.Allow(view{c}, subject))
}

// OwnLimits returns a handler that shows callers what is left of their own limits, as JSON, and
// charges nothing. See core.Guard.OwnLimits.
func OwnLimits(guard *core.Guard) gin.HandlerFunc {
	return func(c *gin.Context) {
		own := guard.OwnLimits(view{c})
		own.SetHeader(c.Writer.Header())
		c.Data(own.Reply())
	}
}

func carryOut(c *gin.Context, answer core.Answer) (goOn bool) {
	if answer.Context != nil {
		c.Request = c.Request.WithContext(answer.Context)
	}
	if answer.Refusal == nil {
		return true
	}
	answer.Refusal.SetHeader(c.Writer.Header())
	c.Data(answer.Refusal.Status, answer.Refusal.ContentType, answer.Refusal.Body)
	c.Abort() // without it gin runs the handler all the same
	return false
}

// view is one pointer wide, so that showing it to the core costs no allocation.
type view struct{ c *gin.Context }

func (v view) Context() context.Context             { return v.c.Request.Context() }
func (v view) Method() string                       { return v.c.Request.Method }
func (v view) Path() string                         { return v.c.Request.URL.Path }
func (v view) Route() string                        { return v.c.FullPath() }
func (v view) RemoteAddr() netip.Addr               { return adapter.PeerAddr(v.c.Request.RemoteAddr) }
func (v view) Host() string                         { return v.c.Request.Host }
func (v view) Header(name string) []string          { return v.c.Request.Header.Values(name) }
func (v view) Query(name string) string             { return v.c.Query(name) }
func (v view) Param(name string) string             { return v.c.Param(name) }
func (v view) Size() int64                          { return v.c.Request.ContentLength }
func (v view) ResponseHeader() adapter.HeaderWriter { return v.c.Writer.Header() }

// Cookie returns the decoded value, as gin does.
func (v view) Cookie(name string) string {
	value, _ := v.c.Cookie(name)
	return value
}

func (v view) Value(key any) any {
	if name, ok := key.(string); ok {
		if value, found := v.c.Get(name); found {
			return value
		}
	}
	return v.c.Request.Context().Value(key)
}
