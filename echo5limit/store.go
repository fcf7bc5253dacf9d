package echo5limit

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v5"

	"github.com/accesslimit/accesslimit/core"
)

// Store is a store for the RateLimiter of echo's package middleware, in place of its
// RateLimiterMemoryStore: counts are shared by all processes on one Redis, and the rules say what
// happens while Redis does not answer.
//
//	e.Use(middleware.RateLimiter(echo5limit.NewStore(limiter, rule)))
//
// The identifier that the RateLimiter extracts is the subject, as identifier:DIGEST: it may be an
// API key, or an address that the caller made up. [core.Digest] returns the same hash. "" stands
// for each rule's own Key, and so does the address that echo finds, which is the RateLimiter's
// default. So these callers are counted by the address that Options.ClientIP finds, unless a rule
// has a Key. Replies have the headers of the rules, refusals Retry-After. A Store is safe for
// concurrent use.
//
// By default, the RateLimiter's DenyHandler replies to every refusal with 429 and a body of its
// own. The error that it receives is nil if the rules refused the call. If they could not be asked,
// because a rule fails closed, the caller could not be identified, or the context ended, the error
// has the status and the message of the refusal: 503 unless Options.Reply says otherwise.
type Store struct{ check *core.Check }

// NewStore returns a Store that decides by these rules together. Give them a Name, because rules
// without one count each route by itself. It panics with a *core.RuleError if a rule is wrong. Rules
// with Count or core.Concurrency are, because a RateLimiter does not learn how the call ends.
func NewStore(limiter *core.Limiter, rules ...core.Rule) *Store {
	return &Store{limiter.MustCheck(rules...)}
}

// AllowContext implements middleware.RateLimiterStoreContext.
func (s *Store) AllowContext(c *echo.Context, identifier string) (allowed bool, err error) {
	answer := s.check.Allow(view{c}, subject(c, identifier))
	setContext(c, answer)
	if answer.Refusal == nil {
		return true, nil
	}
	header := c.Response().Header()
	answer.Refusal.SetHeader(header)
	header.Del(echo.HeaderContentType) // the DenyHandler sends another body
	switch answer.Refusal.Decision.Reason {
	case core.StoreFailClosed, core.IdentifyFailed, core.ContextEnded:
		err = echo.NewHTTPError(answer.Refusal.Status, answer.Refusal.Message)
	}
	return false, err
}

// subject returns the subject that an identifier stands for.
func subject(c *echo.Context, identifier string) string {
	if identifier == "" || identifier == c.RealIP() {
		return ""
	}
	return "identifier:" + core.Digest(identifier)
}

// Allow implements middleware.RateLimiterStore. The RateLimiter calls AllowContext instead. To Allow,
// the call has neither a path nor headers.
func (s *Store) Allow(identifier string) (allowed bool, err error) {
	return s.AllowContext(echo.NewContext(&http.Request{URL: new(url.URL)}, unsent{}), identifier)
}

// unsent is the reply to no call. Its headers are dropped.
type unsent struct{}

func (unsent) Header() http.Header         { return make(http.Header) }
func (unsent) Write(b []byte) (int, error) { return len(b), nil }
func (unsent) WriteHeader(int)             {}
