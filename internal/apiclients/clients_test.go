package apiclients_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-github/v88/github"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// serve starts a server that counts the calls that reach it.
func serve(t *testing.T, answer func(call int64, w http.ResponseWriter)) (url string, calls *atomic.Int64) {
	calls = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(calls.Add(1), w) }))
	bounded.Cleanup(t, server.Close)
	return server.URL, calls
}

// process returns what a process of the service has: a limiter, and a client that takes turns.
func process(t *testing.T, options core.Options, maxWait time.Duration) (*http.Client, *core.Limiter) {
	t.Helper()
	limiter := limitertest.New(t, options)
	turns, err := outgoing.New(limiter, outgoing.Rule{
		Name: "api", Limit: core.PerSecond(1000).Bucket(1000), InFlight: 1, MaxWait: maxWait,
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: turns.Transport(&http.Transport{})}
	t.Cleanup(client.CloseIdleConnections)
	return client, limiter
}

func githubClient(t *testing.T, client *http.Client, url string) *github.Client {
	t.Helper()
	made, err := github.NewClient(github.WithHTTPClient(client), github.WithURLs(new(url+"/"), nil), github.WithAuthToken("alice"))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// What go-github learns in one process, the others obey, for both limits of GitHub.
func TestGoGitHub(t *testing.T) {
	reset := strconv.FormatInt(time.Now().Add(10*time.Minute).Unix(), 10)
	for name, answer := range map[string]func(call int64, w http.ResponseWriter){
		"first limit": func(_ int64, w http.ResponseWriter) {
			w.Header().Set("X-RateLimit-Limit", "5000")
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", reset)
			_, _ = w.Write([]byte("{}"))
		},
		"second limit": func(_ int64, w http.ResponseWriter) {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"message": "You have exceeded a secondary rate limit", "documentation_url": "https://docs.github.com#secondary-rate-limits"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, calls := serve(t, answer)
			options := core.Options{Redis: redistest.Start(t).Client(t)}
			first, _ := process(t, options, time.Second)
			second, limiter := process(t, options, time.Second)
			_, _, err := githubClient(t, first, url).Users.Get(context.Background(), "octocat")
			var abuse *github.AbuseRateLimitError
			if errors.As(err, &abuse) != (name == "second limit") {
				t.Errorf("the first call: %v", err)
			}
			_, _, err = githubClient(t, second, url).Users.Get(context.Background(), "octocat")
			var wait *outgoing.WaitError
			if !errors.As(err, &wait) || !wait.Paused || wait.Wait < 5*time.Minute || calls.Load() != 1 {
				t.Errorf("the call of another process: %v; %d calls were sent", err, calls.Load())
			}
			if s := limiter.Stats().Outgoing[0]; s.GaveUp != 1 || s.Refused != 0 {
				t.Errorf("the counts of the other process are %+v", s)
			}
		})
	}
}

func repeating(client *http.Client) *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient, c.Logger, c.RetryMax = client, nil, 3
	c.RetryWaitMin, c.RetryWaitMax = time.Millisecond, time.Millisecond
	return c
}

// Every attempt of a library that repeats calls takes a turn and frees its slot.
func TestGoRetryableHTTP(t *testing.T) {
	url, calls := serve(t, func(call int64, w http.ResponseWriter) {
		if call < 3 {
			w.Header().Set("Retry-After-Ms", "5")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	client, limiter := process(t, core.Options{}, limitertest.Patient)
	response, err := repeating(client).Get(url)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", response, err)
	}
	_ = response.Body.Close()
	if s := limiter.Stats().Outgoing[0]; calls.Load() != 3 || s.Sent != 3 || s.Refused != 2 || s.Pauses != 2 {
		t.Errorf("after %d calls the counts are %+v", calls.Load(), s)
	}
}

// A library that repeats calls that were not sent learns why in the end, and the server nothing.
func TestGoRetryableHTTPDuringAPause(t *testing.T) {
	url, calls := serve(t, func(_ int64, w http.ResponseWriter) { w.Header().Set("Retry-After", "600") })
	client, _ := process(t, core.Options{}, time.Second)
	response, err := repeating(client).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	_, err = repeating(client).Get(url)
	var wait *outgoing.WaitError
	if !errors.As(err, &wait) || !wait.Paused || calls.Load() != 1 {
		t.Errorf("%v; %d calls were sent", err, calls.Load())
	}
}
