package outgoing_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/internal/bounded"
)

// oneSlot is a rule whose slot must be free for a second call.
var oneSlot = outgoing.Rule{InFlight: 1, MaxWait: patient}

// clientOf returns a client whose calls take turns, and what it uses to send them.
func clientOf(t *testing.T, rule outgoing.Rule, through *http.Transport) (*http.Client, *outgoing.Turns) {
	t.Helper()
	turns := newTurns(t, newLimiter(t, core.Options{}), rule)
	t.Cleanup(through.CloseIdleConnections)
	return &http.Client{Transport: turns.Transport(through)}, turns
}

// clientOfHTTP2 returns a client of a server that speaks HTTP/2, and the server's URL.
func clientOfHTTP2(t *testing.T, handler http.HandlerFunc) (*http.Client, *outgoing.Turns, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	bounded.Cleanup(t, server.Close)
	client, turns := clientOf(t, oneSlot, server.Client().Transport.(*http.Transport))
	return client, turns, server.URL
}

// A proxy that refuses to open a tunnel is not the server: nothing pauses, and the slot is free.
func TestARefusedTunnelIsNoRefusalOfTheServer(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			t.Errorf("the proxy got %s", r.Method)
		}
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	bounded.Cleanup(t, proxy.Close)
	at, err := neturl.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, turns := clientOf(t, oneSlot, &http.Transport{Proxy: http.ProxyURL(at)})
	for range 2 {
		if response, err := client.Get("https://api.example.com/a"); err == nil {
			t.Errorf("the call got %v", response)
		}
	}
	if s := turns.Stats(); s.Sent != 2 || s.Refused != 0 || s.Pauses != 0 {
		t.Errorf("the counts are %+v", s)
	}
}

// A stream that the server resets frees its slot when the caller notices it.
func TestAStreamThatIsResetFreesItsSlot(t *testing.T) {
	client, _, url := clientOfHTTP2(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "the beginning")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	for range 3 {
		response, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(response.Body); err == nil || response.ProtoMajor != 2 {
			t.Errorf("HTTP/%d: the stream was not reset", response.ProtoMajor)
		}
	}
}

// A server that ends its connection after each response, by GOAWAY, loses no slot, and no call twice.
func TestConnectionsThatAreSentAway(t *testing.T) {
	var calls atomic.Int64
	client, turns, url := clientOfHTTP2(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Connection", "close")
	})
	for range 5 {
		response, err := client.Post(url, "text/plain", strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(response.Body); err != nil || response.ProtoMajor != 2 {
			t.Errorf("HTTP/%d: %v", response.ProtoMajor, err)
		}
	}
	if s := turns.Stats(); s.Sent != 5 || calls.Load() != 5 {
		t.Errorf("%d calls reached the server; the counts are %+v", calls.Load(), s)
	}
}

// Trailers say nothing about limits, and one that is far too long ends the body and frees the slot.
func TestTrailersAreNotRead(t *testing.T) {
	for name, length := range map[string]int{"short": 1, "long": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Trailer", "Retry-After, X-Long")
				_, _ = io.WriteString(w, "the body")
				w.Header().Set("Retry-After", "600")
				w.Header().Set("X-Long", strings.Repeat("a", length))
			}))
			bounded.Cleanup(t, server.Close)
			client, turns := clientOf(t, oneSlot, &http.Transport{})
			for range 2 {
				response, err := client.Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadAll(response.Body); (err == nil) != (name == "short") {
					t.Errorf("reading the body: %v", err)
				}
			}
			if s := turns.Stats(); s.Sent != 2 || s.Pauses != 0 {
				t.Errorf("the counts are %+v", s)
			}
		})
	}
}

// A redirect within a host needs no second slot. One to another host takes a turn of that host, without the
// credential, and its refusal stops no call to the first.
func TestARedirectToAnotherHost(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	bounded.Cleanup(t, other.Close)
	there := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	routes := http.NewServeMux()
	routes.Handle("/", http.RedirectHandler("/next", http.StatusFound))
	routes.Handle("/next", http.RedirectHandler(there, http.StatusFound))
	server := httptest.NewServer(routes)
	bounded.Cleanup(t, server.Close)
	var keys []string
	rule := oneSlot
	rule.Key = func(r *http.Request) string {
		keys = append(keys, outgoing.ByCredential(r))
		return keys[len(keys)-1]
	}
	rule.MaxWait = time.Second
	client, turns := clientOf(t, rule, &http.Transport{})
	r, _ := http.NewRequest("GET", server.URL, nil)
	r.Header.Set("Authorization", "Bearer alice")
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if s := turns.Stats(); s.Sent != 3 || s.Waited != 0 || s.Pauses != 1 {
		t.Errorf("the counts are %+v", s)
	}
	_, err = client.Do(r)
	var wait *outgoing.WaitError
	if !errors.As(err, &wait) || wait.Key != strings.TrimPrefix(there, "http://") {
		t.Errorf("the second call: %v", err)
	}
	if len(keys) != 6 || keys[1] != keys[0] || !strings.HasPrefix(keys[0], strings.TrimPrefix(server.URL, "http://")+":") {
		t.Errorf("the keys are %q", keys)
	}
}

// dripping is a body that never ends, until it is closed.
type dripping struct {
	once sync.Once
	over chan struct{}
}

func (d *dripping) Read(p []byte) (int, error) {
	select {
	case <-d.over:
		return 0, errors.New("the body is closed")
	case <-time.After(time.Second):
		return copy(p, "x"), nil
	}
}

func (d *dripping) Close() error {
	d.once.Do(func() { close(d.over) })
	return nil
}

// A refusal whose body never ends holds up no call that would be repeated: the caller gets it.
func TestARefusalWithABodyWithoutEnd(t *testing.T) {
	virtually(t, outgoing.Rule{Retries: 3, InFlight: 1, MaxWait: 10 * time.Second}, func(t *testing.T, turns *outgoing.Turns) {
		through := turns.Transport(sender(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 429, Header: http.Header{}, Body: &dripping{over: make(chan struct{})}}, nil
		}))
		wantTook(t, 10*time.Second, func() {
			response, err := get(t, through, url)
			if err != nil {
				t.Fatal(err)
			}
			if start, err := io.ReadAll(response.Body); err == nil || string(start) != "xxxxxxxxx" && string(start) != "xxxxxxxxxx" {
				t.Errorf("read %q, %v", start, err)
			}
			_ = response.Body.Close()
		})
	})
}

// A server that refuses calls with status 200 is understood if a RoundTripper below the turns gives the
// response the status that it means.
func TestARefusalInABody(t *testing.T) {
	virtually(t, outgoing.Rule{MaxWait: time.Second}, func(t *testing.T, turns *outgoing.Turns) {
		meant := sender(func(r *http.Request) (*http.Response, error) {
			response, err := replies(200, "Retry-After", "60")(r)
			if text, _ := io.ReadAll(response.Body); string(text) == "the body" {
				response.StatusCode = http.StatusTooManyRequests
			}
			return response, err
		})
		send(t, turns.Transport(meant), url)
		if wait := wantWait(t, turns, "api.example.com", time.Minute); !wait.Paused || turns.Stats().Refused != 1 {
			t.Errorf("%+v; the counts are %+v", wait, turns.Stats())
		}
	})
}

// If a server rounds a wait down, one call is refused: the probe. The others go on waiting.
func TestAWaitThatIsRoundedDown(t *testing.T) {
	virtually(t, outgoing.Rule{MaxWait: time.Minute}, func(t *testing.T, turns *outgoing.Turns) {
		free, refusals := time.Now().Add(1900*time.Millisecond), 0
		through := turns.Transport(sender(func(r *http.Request) (*http.Response, error) {
			if time.Now().Before(free) {
				refusals++
				return replies(429, "Retry-After", "1")(r)
			}
			return replies(200)(r)
		}))
		done := make(chan int)
		for i := range 20 {
			if i == 1 {
				time.Sleep(time.Millisecond)
			}
			go func() {
				done <- send(t, through, url)
			}()
		}
		for range 20 {
			<-done
		}
		if refusals != 2 {
			t.Errorf("%d calls were refused, want the first and the probe", refusals)
		}
	})
}
