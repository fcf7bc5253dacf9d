package faults_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

const (
	// patience is how long a healthy server may take on a busy machine. Only a defect uses it up.
	patience = 30 * time.Second
	// timeout is the default Timeout of limiters.
	timeout = 100 * time.Millisecond
)

func init() { redis.SetLogger(quiet{}) }

// quiet keeps go-redis from logging every connection that these tests break.
type quiet struct{}

// Printf implements go-redis's logger.
func (quiet) Printf(context.Context, string, ...any) {}

// service is a limiter as in a service, on a redis-server that the test disturbs.
type service struct {
	t       *testing.T
	server  *redistest.Server
	client  *redis.Client
	limiter *core.Limiter
	within  time.Duration // its Timeout

	mutex sync.Mutex
	bare  []time.Duration // how late bare timers were during the calls
}

// newService returns a limiter on a server, through a client with go-redis's default options and
// these changes.
func newService(t *testing.T, server *redistest.Server, change ...func(*redis.Options)) *service {
	t.Helper()
	return limited(t, server, core.Options{}, change...)
}

// limited is newService with these options of the limiter, to which it adds the client.
func limited(t *testing.T, server *redistest.Server, options core.Options, change ...func(*redis.Options)) *service {
	t.Helper()
	s := &service{t: t, server: server, client: server.Client(t, change...), within: cmp.Or(options.Timeout, timeout)}
	options.Redis = s.client
	options.OnDecision, options.Timeout = leaveDecision, s.within
	s.limiter = limitertest.New(t, options)
	return s
}

// ask is one way to ask a limiter for a permit of a subject. The error is that of a direct call; a
// guarded one has none.
type ask func(ctx context.Context, subject string) (core.Decision, error)

// direct returns an ask that calls the limiter directly, without a framework.
func (s *service) direct(name string, limit core.Limit) ask {
	return s.limiter.MustCounter(name, limit).Allow
}

// guarded returns an ask that calls through the middleware of net/http. The rule counts by the
// subject.
func (s *service) guarded(rule core.Rule) ask {
	rule.Key = func(r core.Request) (string, error) { return r.Header("X-Caller")[0], nil }
	handler := nethttplimit.New(s.limiter, rule)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	return func(ctx context.Context, subject string) (core.Decision, error) {
		var d core.Decision
		ctx = context.WithValue(ctx, decisionKey{}, &d)
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		request.Header.Set("X-Caller", subject)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if letIn := answer.Code == http.StatusOK; letIn != d.Allowed {
			s.t.Errorf("status %d beside the decision %+v", answer.Code, d)
		}
		return d, nil
	}
}

// ways returns a direct call and a rule of each policy, by the names of their counters.
func (s *service) ways(limit core.Limit) map[string]ask {
	return map[string]ask{
		"direct": s.direct("direct", limit),
		"open":   s.guarded(ruleFor("open", limit, core.FailOpen)),
		"closed": s.guarded(ruleFor("closed", limit, core.FailClosed)),
		"local":  s.guarded(ruleFor("local", limit, core.CountLocally(1))),
	}
}

// wantPolicy checks the answer to a call that the store could not decide.
func wantPolicy(t *testing.T, way string, d core.Decision, err error) {
	t.Helper()
	var held bool
	switch way {
	case "direct":
		held = errors.Is(err, core.ErrStore) && d.Reason == ""
	case "open":
		held = err == nil && d.Allowed && d.Reason == core.StoreFailOpen
	case "closed":
		held = err == nil && !d.Allowed && d.Reason == core.StoreFailClosed
	case "local":
		held = err == nil && d.Allowed && d.Reason == core.Allowed && d.Source == core.FromLocal
	}
	if !held {
		t.Errorf("%s: %+v, %v; want the policy's answer", way, d, err)
	}
}

// decided reports whether Redis answered.
func decided(d core.Decision, err error) bool { return err == nil && d.Source == core.FromRedis }

// breaker returns the state of the server's breaker.
func (s *service) breaker() string { return s.limiter.Stats().Shards[0].Breaker }

// failures returns the number of calls that failed with this class of error.
func (s *service) failures(class core.StoreErrorClass) int {
	return int(s.limiter.Stats().StoreErrors[class])
}

// rest closes the service's limiter and client, and returns when the server has executed everything
// that they had sent.
func (s *service) rest() {
	s.t.Helper()
	s.limiter.Close()
	_ = s.client.Close()
	watcher := s.server.Client(s.t)
	defer func() { _ = watcher.Close() }()
	soon(s.t, "the server has no client any more but the one that asks", func() bool {
		runtime.GC() // go-redis before 9.23 leaves the closing of some connections to the collector
		list, err := watcher.ClientList(context.Background()).Result()
		return err == nil && strings.Count(list, "\n") == 1
	})
}

// charged returns the permits charged to each subject, as another limiter sees them.
func charged(t *testing.T, server *redistest.Server, name string, limit core.Limit, subjects []string) []int {
	t.Helper()
	counter := limited(t, server, core.Options{Timeout: patience}).limiter.MustCounter(name, limit)
	used := make([]int, len(subjects))
	const at = 64
	together(at, func(first int) {
		for i := first; i < len(subjects); i += at {
			d, err := counter.Peek(context.Background(), subjects[i])
			if err != nil {
				t.Error(err)
				return
			}
			used[i] = limit.Max - d.Remaining
		}
	})
	return used
}

// together runs a function in several goroutines that begin at once.
var together = limitertest.Together

// soon waits until holds returns true.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("never came: %s", what)
}

// shortOr returns short in the short form of a test, and whole in the long form.
func shortOr[T any](short, whole T) T {
	if long() {
		return whole
	}
	return short
}
