package faults_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/algorithms"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

const (
	// sturdy is, in short runs, the Timeout of limiters with one failing server. It is long enough for
	// the others to answer on a busy machine.
	sturdy = 4 * time.Second
	// mayBeLate is by how much a call may miss its deadline on such a machine. The faults that
	// these tests guard against take longer: go-redis waits three seconds for an answer, five for a
	// connection, and asks four times.
	mayBeLate = 2 * time.Second
)

// shards are several servers behind one client.
type shards struct {
	client redis.UniversalClient
	nodes  []*redistest.Server
	// at returns a client of the server that holds a key.
	at func(ctx context.Context, key string) (*redis.Client, error)
}

// clustered returns the masters of a cluster.
func clustered(t *testing.T, c *redistest.Cluster, change ...func(*redis.ClusterOptions)) shards {
	client := c.Client(t, change...)
	return shards{client, c.Nodes(), client.MasterForKey}
}

// ringed returns the servers of a ring.
func ringed(t *testing.T, r *redistest.Ring, change ...func(*redis.RingOptions)) shards {
	client := r.Client(t, change...)
	return shards{client, r.Nodes(), func(_ context.Context, key string) (*redis.Client, error) { return client.GetShardClientForKey(key) }}
}

// limiter returns a limiter on these servers that stores each decision where call finds it.
func (s shards) limiter(t *testing.T, timeout time.Duration) *core.Limiter {
	return limiterOn(t, s.client, timeout)
}

func limiterOn(t *testing.T, client redis.UniversalClient, timeout time.Duration) *core.Limiter {
	t.Helper()
	return limitertest.New(t, core.Options{Redis: client, Timeout: timeout, OnDecision: leaveDecision})
}

// subjects returns n subjects whose counters lie on this server.
func (s shards) subjects(t *testing.T, node, n int) []string {
	t.Helper()
	var found []string
	for i := 0; len(found) < n; i++ {
		subject := fmt.Sprintf("%s-%d", t.Name(), i)
		on, err := s.at(context.Background(), "{"+subject+"}")
		if err != nil || i > 100*n+1000 {
			t.Fatalf("%d of %d subjects lie on server %d: %v", len(found), n, node, err)
		}
		if on.Options().Addr == s.nodes[node].Addr() {
			found = append(found, subject)
		}
	}
	return found
}

// subject returns a subject whose counters lie on this server.
func (s shards) subject(t *testing.T, node int) string {
	t.Helper()
	return s.subjects(t, node, 1)[0]
}

// decisionKey is the key under which a call's context holds its decision.
type decisionKey struct{}

// leaveDecision is an OnDecision that stores the decision there.
func leaveDecision(ctx context.Context, e core.Event) {
	if into, ok := ctx.Value(decisionKey{}).(*core.Decision); ok {
		*into = e.Decision
	}
}

// endpoint is a handler of net/http behind rules that count by the caller of call.
type endpoint struct{ http.Handler }

// result is the result of a call.
type result struct {
	status int
	core.Decision
	took time.Duration
}

// newEndpoint returns a handler behind these rules. Rules without a Key count by the caller of call.
func newEndpoint(limiter *core.Limiter, rules ...core.Rule) endpoint {
	for i := range rules {
		if rules[i].Key == nil {
			rules[i].Key = func(r core.Request) (string, error) { return r.Header("Subject")[0], nil }
		}
	}
	return endpoint{nethttplimit.New(limiter, rules...)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))}
}

// call makes a call as this subject.
func (d endpoint) call(subject string) (k result) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Subject", subject)
	w := httptest.NewRecorder()
	begin := time.Now()
	d.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), decisionKey{}, &k.Decision)))
	k.took, k.status = time.Since(begin), w.Code
	return k
}

// byRedis reports whether Redis decided, either just now or by a refusal that still holds.
func (k result) byRedis() bool { return k.Source == core.FromRedis || k.Source == core.FromDenyCache }

// wantPolicy fails unless Redis decided the call or the rule's policy did, and the caller waited no
// longer than allowed.
func (k result) wantPolicy(t *testing.T, policy core.StorePolicy, timeout time.Duration) {
	t.Helper()
	if k.took > timeout+mayBeLate {
		t.Errorf("a call was back after %v, with a Timeout of %v", k.took, timeout)
	}
	switch {
	case k.byRedis() && (k.status == http.StatusOK || k.status == http.StatusTooManyRequests):
	case policy == core.FailOpen && k.Reason == core.StoreFailOpen && k.status == http.StatusOK:
	case policy == core.FailClosed && k.Reason == core.StoreFailClosed && k.status == http.StatusServiceUnavailable:
	case policy == locally && k.Source == core.FromLocal && k.Reason == core.Allowed && k.status == http.StatusOK:
	case policy == locally && k.Source == core.FromLocal && k.Reason == core.LimitExceeded && k.status == http.StatusTooManyRequests:
	default:
		t.Errorf("a call ended with %d: %+v, want what Redis or %v says", k.status, k.Decision, policy)
	}
}

// alwaysOf is a Key for a rule that counts all callers as one subject.
func alwaysOf(subject string) core.KeyFunc {
	return func(core.Request) (string, error) { return subject, nil }
}

// eachAlgorithm returns a limit of each algorithm whose permits do not come back while a test runs:
// a bucket of 10,000 gets one back in an hour.
func eachAlgorithm(most int) (limits []core.Limit) {
	for _, a := range algorithms.All() {
		limits = append(limits, core.Limit{Max: most, Window: 360 * 24 * time.Hour, Algorithm: a})
	}
	return limits
}

// ruleFor returns a rule that counts where a handle of this name and limit does.
func ruleFor(name string, limit core.Limit, policy core.StorePolicy) core.Rule {
	return core.Rule{Name: name, Limit: limit, OnStoreError: policy}
}

// slotsOf returns the slots that a rule with this limit by Concurrency takes.
func slotsOf(limiter *core.Limiter, name string, limit core.Limit) core.Slots {
	return limiter.MustSlots(name, limit.Max).LostAfter(limit.Window)
}

// used returns how much of a limit a subject has used.
func used(t *testing.T, limiter *core.Limiter, name, subject string, limit core.Limit) int {
	t.Helper()
	var d core.Decision
	var err error
	if limit.Algorithm == core.Concurrency {
		d, err = slotsOf(limiter, name, limit).Peek(context.Background(), subject)
	} else {
		d, err = limiter.MustCounter(name, limit).Peek(context.Background(), subject)
	}
	if err != nil {
		t.Errorf("%s of %s cannot be looked at: %v", name, subject, err)
	}
	return limit.Max - d.Remaining
}

// waits records how long calls took. Any goroutine may add to it.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) add(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
}

// percentile returns the time that p percent of the calls did not exceed.
func (w *waits) percentile(p int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) == 0 {
		return 0
	}
	slices.SortFunc(w.all, cmp.Compare[time.Duration])
	return w.all[min(len(w.all)*p/100, len(w.all)-1)]
}
