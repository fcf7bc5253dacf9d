package nethttplimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/replay"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// A replay of a log decides as the service did, call by call, however its callers spelled the target.
func TestReplayAgreesWithTheWire(t *testing.T) {
	random := rand.New(rand.NewPCG(27, 5))
	refused := 0
	for range 20 {
		options, live, log := liveLog(t, random)
		var then []string
		options.OnDecision = func(_ time.Time, e core.Event) { then = append(then, decided(e)) }
		if _, err := replay.Run(t.Context(), options, replay.Log{Name: "test.log", Reader: strings.NewReader(log)}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(live, then) {
			t.Fatalf("%+v\nlive    %q\nreplay  %q\n%s", options.Guards[0].Rules, live, then, log)
		}
		refused += strings.Count(strings.Join(then, "\n"), string(core.LimitExceeded))
	}
	if refused < 50 {
		t.Errorf("%d calls were refused: the test shows too little", refused)
	}
}

// liveLog calls a service with a few rules, and returns what it decided, the log that nginx would have
// written, and how to replay it.
func liveLog(t *testing.T, random *rand.Rand) (options replay.Options, live []string, log string) {
	options = replay.Options{
		Format:   `$remote_addr [$time_local] "$request" $status "$http_x_forwarded_for" "$http_host"`,
		ClientIP: core.ClientIP{TrustedProxies: []string{"127.0.0.0/8", "10.0.0.0/8"}},
	}
	limiter := limitertest.New(t, core.Options{ClientIP: options.ClientIP, OnDecision: func(_ context.Context, e core.Event) { live = append(live, decided(e)) }})
	rules := []core.Rule{drawRule(random, "0"), drawRule(random, "1")}
	for i := range rules {
		rules[i].Key = []core.KeyFunc{nil, core.ByHost}[random.IntN(2)]
	}
	options.Guards = []replay.Guard{{Rules: rules}}
	server := httptest.NewServer(nethttplimit.New(limiter, rules...)(http.NotFoundHandler()))
	bounded.Cleanup(t, server.Close)
	w := dial(t, server.Listener.Addr().String())
	for range 40 {
		info := drawTarget(random)
		status := w.call(t, info)
		log += fmt.Sprintf("127.0.0.1 [22/Nov/2026:10:00:00 +0000] \"%s %s HTTP/1.1\" %d \"%s\" \"%s\"\n", info.Method, inLog(info.Path), status,
			strings.Join(info.Header["X-Forwarded-For"], ", "), info.Host)
	}
	return options, live, log
}

// decided returns what was decided of whom.
func decided(e core.Event) string {
	return fmt.Sprintf("%s of %s by %s at %s", e.Decision.Reason, e.Decision.Key, e.Decision.Rule, e.Path)
}

func drawTarget(random *rand.Rand) operate.Call {
	info := operate.Call{Method: pick(random, methods...), Host: pick(random, "a.example", "A.example:80", "b.example."), Header: make(http.Header)}
	info.Path = pick(random, "", "", "", "/", "//x", "http://c.example", "http://u@c.example", "http://") + pick(random, "/users/1", "/a/b", "/a%2Fb", "/a/b%20c", "/a%20b", "/café/1", "/x%25",
		"/a/../users/1", "//a/b", "/a/./b", "/A/b", "/a;b/c", "/a/b%3F", "/a\"b", `/a\b`, "/a#b", "/a/b%00") + pick(random, "", "?q=1", "?q=a;b", "??")
	if random.IntN(3) > 0 {
		info.Header.Set("X-Forwarded-For", pick(random, "192.0.2.1", "192.0.2.2, 10.0.0.1", "junk", "2001:db8::1, 127.0.0.1", "192.0.2.1,"))
	}
	return info
}

// inLog returns a text as nginx writes it into a log.
func inLog(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\x%02X`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
