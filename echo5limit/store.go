package echo5limit

import (
	"net/http"
	"net/netip"
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
// The subject of the rules is the identifier that the RateLimiter extracts. An IP address counts as
// [core.Limiter.IPSubject], as in a rule by IP. "" stands for each rule's own key. Replies have the
// headers of the rules, refusals Retry-After. It is safe for concurrent use.
//
// By default, the RateLimiter's DenyHandler replies to every refusal with 429 and a body of its own. It
// receives an error with the status and the message of the refusal, so one that returns this error
// replies with 503 if a rule fails closed.
type Store struct {
	limiter *core.Limiter
	check   *core.Check
}

// NewStore returns a Store that decides by these rules together. Give them a Name, because rules
// without one count each route by itself. It panics with a *core.RuleError if a rule is wrong. Rules
// with Count or core.Concurrency are, because a RateLimiter does not learn how the call ends.
func NewStore(limiter *core.Limiter, rules ...core.Rule) *Store {
	return &Store{limiter, limiter.MustCheck(rules...)}
}

// AllowContext implements middleware.RateLimiterStoreContext.
func (s *Store) AllowContext(c *echo.Context, identifier string) (allowed bool, err error) {
	if addr, err := netip.ParseAddr(identifier); err == nil {
		identifier = s.limiter.IPSubject(addr)
	}
	answer := s.check.Allow(view{c}, identifier)
	setContext(c, answer)
	if answer.Refusal == nil {
		return true, nil
	}
	header := c.Response().Header()
	answer.Refusal.SetHeader(header)
	header.Del(echo.HeaderContentType) // the DenyHandler sends another body
	return false, echo.NewHTTPError(answer.Refusal.Status, answer.Refusal.Message)
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
