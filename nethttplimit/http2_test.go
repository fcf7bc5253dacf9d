package nethttplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// TestResetStreamsCount checks that a client of HTTP/2 who resets its stream while the handler runs
// does not get its permit back: the handler may have done what it was asked to do.
func TestResetStreamsCount(t *testing.T) {
	limiter := limitertest.New(t, core.Options{})
	entered, ended := make(chan struct{}, 4), make(chan struct{}, 4)
	rule := core.Rule{Name: "act", Seconds: 600, MaxCount: 3, Count: func(status int) bool { return status < 400 }}
	limited := nethttplimit.New(limiter, rule)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	}))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limited.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server.Config.Protocols = protocols
	server.Start()
	bounded.Cleanup(t, server.Close)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	call := func() (*http.Response, error) {
		ctx, reset := context.WithCancel(t.Context())
		defer reset()
		go func() { <-entered; reset() }()
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		defer func() {
			select {
			case <-ended:
			case <-time.After(limitertest.Patient):
				t.Error("the handler has not returned")
			}
		}()
		return transport.RoundTrip(request)
	}
	for range 3 {
		if reply, err := call(); err == nil {
			t.Fatalf("a stream that was reset got %v", reply)
		}
	}
	if reply, err := call(); err != nil || reply.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the fourth call got %v, %v", reply, err)
	}
	close(entered)
}
