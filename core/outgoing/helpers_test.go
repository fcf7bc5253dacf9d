package outgoing_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

const (
	patient = limitertest.Patient
	alice   = "api.example.com:alice"
	bob     = "api.example.com:bob"
)

var (
	background        = context.Background()
	newLimiter        = limitertest.New
	onBothEngines     = limitertest.OnBothEngines
	onEveryDeployment = limitertest.OnEveryDeployment
	eventually        = limitertest.Eventually

	// plenty is a bucket that nobody empties.
	plenty = core.PerSecond(1000).Bucket(1000)
)

func newTurns(t testing.TB, limiter *core.Limiter, rule outgoing.Rule) *outgoing.Turns {
	t.Helper()
	if rule.Name == "" {
		rule.Name = "api"
	}
	if rule.Limit == (core.Limit{}) {
		rule.Limit = plenty
	}
	turns, err := outgoing.New(limiter, rule)
	if err != nil {
		t.Fatal(err)
	}
	return turns
}

// virtually runs a test in this process, in a time that passes only while all of its goroutines wait.
func virtually(t *testing.T, rule outgoing.Rule, test func(t *testing.T, turns *outgoing.Turns)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newTurns(t, newLimiter(t, core.Options{}), rule)) })
}

func take(t testing.TB, turns *outgoing.Turns, key string) *outgoing.Turn {
	t.Helper()
	turn, err := turns.Take(background, key)
	if err != nil {
		t.Fatalf("Take(%q): %v", key, err)
	}
	return turn
}

// call takes a turn, reports an answer, and releases the turn.
func call(t testing.TB, turns *outgoing.Turns, key string, a outgoing.Answer) {
	t.Helper()
	turn := take(t, turns, key)
	turn.Answered(a)
	turn.Release()
}

// wantWait checks that a call is not sent, and how long it would have to wait.
func wantWait(t testing.TB, turns *outgoing.Turns, key string, want time.Duration) *outgoing.WaitError {
	t.Helper()
	turn, err := turns.Take(background, key)
	var wait *outgoing.WaitError
	if !errors.As(err, &wait) {
		t.Fatalf("Take(%q): %v, %v; want a WaitError", key, turn, err)
	}
	if want > 0 && wait.Wait != want {
		t.Errorf("Take(%q): wait for %v, want %v", key, wait.Wait, want)
	}
	return wait
}

// wantTook checks how long something takes.
func wantTook(t testing.TB, want time.Duration, do func()) {
	t.Helper()
	began := time.Now()
	do()
	if took := time.Since(began); took != want {
		t.Errorf("it took %v, want %v", took, want)
	}
}

func refused(wait time.Duration) outgoing.Answer { return outgoing.Answer{Refused: true, Wait: wait} }

// send sends a request through a transport, and closes the body of the response.
func send(t testing.TB, through http.RoundTripper, url string) (status int) {
	t.Helper()
	response, err := get(t, through, url)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func get(t testing.TB, through http.RoundTripper, url string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return through.RoundTrip(r)
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
