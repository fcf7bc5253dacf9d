package outgoing_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
)

// A slot is free when the body of the response is closed, or read to its end. A call that fails frees its slot
// at once, and so does a response without a body, a panic, and a RoundTripper that breaks its contract.
func TestSlotsAreFreed(t *testing.T) {
	broken := errors.New("the connection is broken")
	read := func(r *http.Response) error { _, err := io.ReadAll(r.Body); return err }
	for name, test := range map[string]struct {
		next sender
		end  func(*http.Response) error // nil: the slot is free at once
	}{
		"closed": {replies(200), func(r *http.Response) error { return r.Body.Close() }},
		"read":   {replies(200), read},
		"both":   {replies(200), func(r *http.Response) error { return errors.Join(read(r), r.Body.Close(), r.Body.Close()) }},
		"error":  {func(*http.Request) (*http.Response, error) { return nil, broken }, nil},
		"panic":  {func(*http.Request) (*http.Response, error) { panic("of the transport") }, nil},
		"none":   {func(*http.Request) (*http.Response, error) { return nil, nil }, nil}, // which http.Client reports
		"empty": {func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, outgoing.Rule{InFlight: 1, MaxWait: time.Millisecond}, func(t *testing.T, turns *outgoing.Turns) {
				var response *http.Response
				func() {
					defer func() {
						if panicked := recover(); (panicked != nil) != (name == "panic") {
							t.Errorf("recovered %v", panicked)
						}
					}()
					var err error
					if response, err = get(t, turns.Transport(test.next), url); name == "error" && !errors.Is(err, broken) {
						t.Errorf("the error is %v", err)
					}
				}()
				if test.end != nil {
					wantWait(t, turns, "api.example.com", 0)
					if err := test.end(response); err != nil {
						t.Error(err)
					}
				}
				take(t, turns, "api.example.com").Release()
			})
		})
	}
}

// The response to a call that changes the protocol can still be written to.
func TestAnUpgradedConnectionCanBeWrittenTo(t *testing.T) {
	virtually(t, outgoing.Rule{InFlight: 1, MaxWait: time.Millisecond}, func(t *testing.T, turns *outgoing.Turns) {
		var sent strings.Builder
		response, err := get(t, turns.Transport(sender(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 101, Body: struct {
				io.ReadCloser
				io.Writer
			}{http.NoBody, &sent}}, nil
		})), url)
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := response.Body.(io.Writer); !ok {
			t.Error("the body cannot be written to")
		} else if _, err := io.WriteString(w, "hello"); err != nil || sent.String() != "hello" {
			t.Errorf("sent %q: %v", sent.String(), err)
		}
		wantWait(t, turns, "api.example.com", 0)
		_ = response.Body.Close()
		take(t, turns, "api.example.com").Release()
	})
}

// A caller who leaves without closing the body frees its slot: its connection is closed too.
func TestACallerWhoNeverClosesTheBody(t *testing.T) {
	virtually(t, outgoing.Rule{InFlight: 1, MaxWait: time.Second}, func(t *testing.T, turns *outgoing.Turns) {
		ctx, cancel := context.WithCancel(background)
		r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
		response, err := turns.Transport(replies(200)).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		wantWait(t, turns, "api.example.com", 0)
		cancel()
		take(t, turns, "api.example.com").Release()
		_ = response.Body.Close()
	})
}

// A long-lived context keeps nothing of calls that have ended.
func TestALongLivedContextKeepsNothing(t *testing.T) {
	turns := newTurns(t, newLimiter(t, core.Options{}), outgoing.Rule{InFlight: 1})
	ctx := &watchedContext{Context: background, done: make(chan struct{})}
	turn := take(t, turns, alice)
	turn.ReleaseAfter(ctx)
	turn.ReleaseAfter(ctx)
	if ctx.watchers.Load() != 2 {
		t.Errorf("%d functions wait for the context", ctx.watchers.Load())
	}
	turn.Release()
	turn.ReleaseAfter(ctx)
	if ctx.watchers.Load() != 0 {
		t.Errorf("%d functions wait for the context after the call", ctx.watchers.Load())
	}
}

// watchedContext counts the functions that wait for its end.
type watchedContext struct {
	context.Context
	done     chan struct{}
	watchers atomic.Int64
}

// Done implements context.Context.
func (c *watchedContext) Done() <-chan struct{} { return c.done }

// AfterFunc registers a function, as package context looks for it.
func (c *watchedContext) AfterFunc(func()) (stop func() bool) {
	c.watchers.Add(1)
	return func() bool { c.watchers.Add(-1); return true }
}
