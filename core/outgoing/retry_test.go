package outgoing_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/outgoing"
)

// server replies to each request with the next status, and notes the bodies that it got.
type server struct {
	statuses []int
	header   []string
	bodies   []string
	replied  []*closed
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	status := s.statuses[min(len(s.bodies), len(s.statuses)-1)]
	s.bodies = append(s.bodies, string(body))
	response, err := replies(status, s.header...)(r)
	reply := &closed{Reader: response.Body}
	response.Body, s.replied = reply, append(s.replied, reply)
	return response, err
}

// Nothing is repeated unless the rule says so, and then only what may be. The old body is read and
// closed, so that one slot is enough.
func TestRetries(t *testing.T) {
	for name, test := range map[string]struct {
		method, header string
		retries        int
		statuses       []int
		want, attempts int
	}{
		"not asked for":                {"GET", "", 0, []int{429, 200}, 429, 1},
		"once":                         {"GET", "", 1, []int{429, 200}, 200, 2},
		"with its body":                {"PUT", "", 5, []int{429, 429, 200}, 200, 3},
		"without a body":               {"PUT", "", 5, []int{429, 200}, 200, 2},
		"in vain":                      {"DELETE", "", 2, []int{429}, 429, 3},
		"may act twice":                {"POST", "", 5, []int{429, 200}, 429, 1},
		"recognized by its key":        {"POST", "Idempotency-Key", 5, []int{429, 200}, 200, 2},
		"not refused for a limit":      {"GET", "", 5, []int{500, 200}, 500, 1},
		"refused for the time, as 503": {"GET", "", 5, []int{503, 200}, 200, 2},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, outgoing.Rule{InFlight: 1, Retries: test.retries}, func(t *testing.T, turns *outgoing.Turns) {
				s := &server{statuses: test.statuses, header: []string{"Retry-After", "2"}}
				if test.want == 500 {
					s.header = nil
				}
				r, _ := http.NewRequest(test.method, url, strings.NewReader("what is sent"))
				if test.header != "" {
					r.Header.Set(test.header, "1")
				}
				sent := "what is sent"
				if name == "without a body" { // which has a GetBody nevertheless
					r.Body, sent = nil, ""
				}
				response, err := turns.Transport(s).RoundTrip(r)
				if err != nil || response.StatusCode != test.want {
					t.Fatalf("%v, %v; want %d", response, err, test.want)
				}
				if body, err := io.ReadAll(response.Body); err != nil || string(body) != "the body" {
					t.Errorf("the body is %q, %v", body, err)
				}
				if want := slices.Repeat([]string{sent}, test.attempts); !slices.Equal(s.bodies, want) {
					t.Errorf("the server got %q, want %d attempts", s.bodies, test.attempts)
				}
				for _, earlier := range s.replied[:test.attempts-1] {
					if !earlier.is {
						t.Error("the body of an earlier response was not closed")
					}
				}
			})
		})
	}
}

// If the pause is too long to repeat the call, the caller gets what the server replied.
func TestARefusalThatCannotBeRepeated(t *testing.T) {
	virtually(t, outgoing.Rule{InFlight: 1, Retries: 3, MaxWait: time.Second}, func(t *testing.T, turns *outgoing.Turns) {
		s := &server{statuses: []int{429}, header: []string{"Retry-After", "60"}}
		response, err := get(t, turns.Transport(s), url)
		if err != nil || response.StatusCode != 429 || len(s.bodies) != 1 {
			t.Fatalf("%v, %v after %d attempts", response, err, len(s.bodies))
		}
		if body, err := io.ReadAll(response.Body); err != nil || string(body) != "the body" {
			t.Errorf("the body is %q, %v", body, err)
		}
	})
}

// A body that is too long to keep, or that breaks off, belongs to the caller, who can read all of it.
func TestARefusalWithALongBodyIsNotRepeated(t *testing.T) {
	broken := errors.New("the connection is broken")
	long := bytes.Repeat([]byte("x"), 1<<17)
	for name, body := range map[string]io.Reader{
		"long": bytes.NewReader(long), "broken": io.MultiReader(strings.NewReader("xx"), failing{broken}),
	} {
		virtually(t, outgoing.Rule{InFlight: 1, Retries: 3}, func(t *testing.T, turns *outgoing.Turns) {
			attempts := 0
			response, err := get(t, turns.Transport(sender(func(*http.Request) (*http.Response, error) {
				attempts++
				return &http.Response{StatusCode: 429, Header: http.Header{}, Body: io.NopCloser(body)}, nil
			})), url)
			if err != nil || attempts != 1 {
				t.Fatalf("%s: %v after %d attempts", name, err, attempts)
			}
			got, err := io.ReadAll(response.Body)
			if name == "long" && (err != nil || !bytes.Equal(got, long)) || name == "broken" && !errors.Is(err, broken) {
				t.Errorf("%s: read %d bytes, %v", name, len(got), err)
			}
			_ = response.Body.Close()
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
