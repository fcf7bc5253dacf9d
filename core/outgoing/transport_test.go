package outgoing_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// sender is a RoundTripper that is a function.
type sender func(*http.Request) (*http.Response, error)

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

// replies is a RoundTripper whose responses have a status and headers.
func replies(status int, header ...string) sender {
	return func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		for i := 0; i < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.WriteString("the body")
		return w.Result(), nil
	}
}

const url = "http://api.example.com/a"

// closed is a body that notes that it was closed.
type closed struct {
	io.Reader
	is bool
}

func (c *closed) Close() error {
	c.is = true
	return nil
}

// The body of a request is closed, and next is not asked, whatever the reason for which it is not sent.
func TestTheBodyOfACallThatIsNotSentIsClosed(t *testing.T) {
	dead := limitertest.DeadRedis(t)
	ended, cancel := context.WithCancel(background)
	cancel()
	for name, test := range map[string]struct {
		ctx     context.Context
		options core.Options
		rule    outgoing.Rule
	}{
		"the caller left":     {ended, core.Options{}, outgoing.Rule{}},
		"nobody is counted":   {background, core.Options{}, outgoing.Rule{Key: func(*http.Request) string { return "" }}},
		"Redis is away":       {background, dead, outgoing.Rule{OnStoreError: core.FailClosed}},
		"a pause":             {background, core.Options{}, outgoing.Rule{}},
		"no slot is free":     {background, core.Options{}, outgoing.Rule{InFlight: 1, MaxWait: time.Millisecond}},
		"the turn comes late": {background, core.Options{}, outgoing.Rule{Limit: onePerSecond, MaxWait: time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			turns := newTurns(t, newLimiter(t, test.options), test.rule)
			if test.rule.MaxWait > 0 {
				take(t, turns, "api.example.com")
			}
			if name == "a pause" {
				call(t, turns, "api.example.com", refused(time.Hour))
			}
			body := &closed{Reader: strings.NewReader("text")}
			r, _ := http.NewRequestWithContext(test.ctx, "POST", url, body)
			response, err := turns.Transport(sender(func(*http.Request) (*http.Response, error) {
				t.Error("the call was sent")
				return nil, errors.ErrUnsupported
			})).RoundTrip(r)
			if err == nil || response != nil || !body.is {
				t.Errorf("%v, %v; the body is closed: %v", response, err, body.is)
			}
		})
	}
}

// The body of a response is closed if nobody gets it, because OnDecision panics at the refusal.
func TestTheBodyOfAResponseThatNobodyGetsIsClosed(t *testing.T) {
	limiter := newLimiter(t, core.Options{OnDecision: func(_ context.Context, e core.Event) {
		if !e.Decision.Allowed {
			panic("by the service")
		}
	}})
	turns := newTurns(t, limiter, outgoing.Rule{InFlight: 1})
	body := &closed{Reader: strings.NewReader("text")}
	transport := turns.Transport(sender(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 429, Header: make(http.Header), Body: body}, nil
	}))
	defer func() {
		if panicked := recover(); panicked != "by the service" || !body.is {
			t.Errorf("recovered %v; the body is closed: %v", panicked, body.is)
		}
	}()
	response, err := get(t, transport, url)
	t.Errorf("%v, %v; want a panic", response, err)
}

// The caller's request stays as it was, also when it is repeated.
func TestTheRequestIsNotChanged(t *testing.T) {
	virtually(t, outgoing.Rule{Retries: 2}, func(t *testing.T, turns *outgoing.Turns) {
		r, _ := http.NewRequest("PUT", url, strings.NewReader("text"))
		r.Header.Set("Authorization", "Bearer alice")
		before, body := r.Clone(background), r.Body
		response, err := turns.Transport(&server{statuses: []int{429, 200}}).RoundTrip(r)
		if err != nil || response.StatusCode != 200 {
			t.Fatal(response, err)
		}
		if r.Body != body || !maps.EqualFunc(r.Header, before.Header, slices.Equal) || *r.URL != *before.URL || r.Method != before.Method || r.ContentLength != 4 {
			t.Errorf("the request is %+v, was %+v", r, before)
		}
	})
}

// Hints are read in every response, whatever its status, even if the caller's context ends with it. They
// stop the calls that the server names. A rule may name a quota differently than the server does: then a refusal
// stops the calls of both names. A text that is too long for the name of a quota is none, because it would be kept.
func TestTheCallsThatAResponseIsAbout(t *testing.T) {
	const noResource, host = "none", "api.example.com"
	for name, test := range map[string]struct {
		resource     string // that the rule names
		says         string // the resource that the server names
		status       int
		paused, free []string
	}{
		"any resource, 200":     {noResource, "", 200, []string{host}, nil},
		"any resource, 404":     {noResource, "core", 404, []string{host}, []string{host + "/core"}},
		"any resource, 429":     {noResource, "", 429, []string{host}, nil},
		"any resource, 503":     {noResource, "", 503, []string{host}, nil},
		"one resource":          {"search", "search", 200, []string{host + "/search"}, []string{host, host + "/core"}},
		"another resource":      {"core", "search", 200, []string{host + "/search"}, []string{host + "/core"}},
		"refused, by no name":   {"", "core", 429, []string{host, host + "/core"}, nil},
		"refused, by two names": {"first", "core", 429, []string{host + "/first", host + "/core"}, nil},
		"refused, too long":     {"core", strings.Repeat("a", 1000), 429, []string{host + "/core"}, []string{host + "/" + strings.Repeat("a", 1000)}},
	} {
		t.Run(name, func(t *testing.T) {
			rule := outgoing.Rule{MaxWait: time.Second, Resource: func(*http.Request) string { return test.resource }}
			if test.resource == noResource {
				rule.Resource = nil
			}
			virtually(t, rule, func(t *testing.T, turns *outgoing.Turns) {
				ctx, cancel := context.WithCancel(background)
				r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
				response, err := turns.Transport(sender(func(r *http.Request) (*http.Response, error) {
					cancel()
					return replies(test.status, "X-RateLimit-Resource", test.says, "Retry-After", "60")(r)
				})).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				for _, key := range test.paused {
					wantWait(t, turns, key, time.Minute)
				}
				for _, key := range test.free {
					take(t, turns, key).Release()
				}
				if s := turns.Stats(); s.Refused > 1 {
					t.Errorf("the counts are %+v", s)
				}
			})
		})
	}
}
