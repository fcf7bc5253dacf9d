package rivals

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adapter"
)

// Leased is our SlidingWindow in a rule that leases permits. It is called through the functions
// that adapters use.
var Leased = Redis{Name: "accesslimit SlidingWindow, leased", Open: openLeased}

func leaseRule(l Limit) core.Rule {
	return core.Rule{
		Name:         "bench",
		Limit:        core.Limit{Max: l.Max, Window: l.Window},
		OnStoreError: core.FailClosed,
		Lease:        min(l.Max, 100_000),
		Key:          func(r core.Request) (string, error) { return r.Path(), nil },
	}
}

func openLeased(p Place, l Limit) (Opened, error) {
	client := p.client()
	limiter, err := core.New(core.Options{Redis: client, Logger: Silent, Timeout: clientTimeout, Headers: core.NoHeaders})
	if err != nil {
		return Opened{}, err
	}
	guard, err := limiter.Guard(leaseRule(l))
	if err != nil {
		return Opened{}, err
	}
	allow := func(ctx context.Context, subject string) (allowed bool, err error) { return check(ctx, guard, subject) }
	return Opened{Allow: allow, Close: func() { limiter.Close(); _ = client.Close() }}, nil
}

var errNoAnswer = errors.New("the store did not answer")

func check(ctx context.Context, guard *core.Guard, subject string) (allowed bool, err error) {
	v := views.Get().(*view)
	v.ctx, v.path = ctx, subject
	answer := guard.Check(v)
	views.Put(v)
	switch {
	case answer.Refusal == nil:
		answer.Run(noHandler)
		return true, nil
	case answer.Refusal.Status == http.StatusServiceUnavailable:
		return false, errNoAnswer
	default:
		return false, nil
	}
}

func noHandler() int { return http.StatusOK }

// view is a call without a framework.
type view struct {
	ctx    context.Context
	path   string
	header noHeader
}

var views = sync.Pool{New: func() any { return new(view) }}

func (v *view) Context() context.Context             { return v.ctx }
func (v *view) Method() string                       { return "GET" }
func (v *view) Path() string                         { return v.path }
func (v *view) Route() string                        { return "" }
func (v *view) RemoteAddr() netip.Addr               { return netip.Addr{} }
func (v *view) Host() string                         { return "" }
func (v *view) Header(string) []string               { return nil }
func (v *view) Query(string) string                  { return "" }
func (v *view) Param(string) string                  { return "" }
func (v *view) Cookie(string) string                 { return "" }
func (v *view) Value(any) any                        { return nil }
func (v *view) Size() int64                          { return 0 }
func (v *view) ResponseHeader() adapter.HeaderWriter { return &v.header }

type noHeader struct{}

func (*noHeader) Set(string, string) {}
func (*noHeader) Add(string, string) {}
