package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// While Redis is down or hangs, every page comes, says so, and shows what this process knows, and acts fail.
// When Redis is back, so are the pages.
func TestPagesWithoutRedis(t *testing.T) {
	for name, fault := range map[string]func(*redistest.Server){"down": (*redistest.Server).Kill, "hung": (*redistest.Server).Stop} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			client := server.Client(t, func(o *redis.Options) { o.DialerRetries = 1 })
			limiter := newLimiter(t, core.Options{Redis: client, Timeout: 300 * time.Millisecond})
			guard := attach(t, limiter, steered)
			viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
			limitertest.Eventually(t, "a subject is banned", func() bool {
				_, err := operate.New(limiter).Ban(t.Context(), "api", "user:mallory {}", time.Hour)
				return err == nil
			})
			fault(server)
			guard.Check(callOf("GET", "/"))
			for path, shows := range map[string]string{
				"":                           "not counted", // this process's figures
				"offenders":                  "Offenders",
				"bans":                       "This process knows 1 ban, and refuses this subject meanwhile",
				"bans?rule=api":              "user:mallory {} api",
				"audit":                      "Audit",
				"subject?subject=user:alice": "api, 100/h",
				"explain?method=GET&path=/&address=192.0.2.7": "The subject is ip:192.0.2.7",
			} {
				wantParts(t, viewer.wantPage(path), "Redis did not answer (", shows)
			}
			wantParts(t, viewer.wantPage("rules"), "api 100/h all calls 1 0")
			operator := as(t, "operator", viewer.handler)
			ban := operator.send("ban", http.StatusServiceUnavailable, fields("rule", "api", "subject", "user:bob", "for", "1h", "note", "n"))
			wantParts(t, ban.body, "Redis did not answer")
			if got := viewer.get("api/now").body; !strings.Contains(got, `"servers":[{"address":"`+server.Addr()+`","breaker":"`) || !strings.Contains(got, `"errors":[{"class":"`) {
				t.Errorf("the API says %s", got)
			}
			if name == "down" {
				server.Restart()
			} else {
				server.Continue()
			}
			limitertest.Eventually(t, "the page says that Redis answers", func() bool { return strings.Contains(viewer.wantPage(""), "Redis answers, in") })
			limitertest.Eventually(t, "so does the audit", func() bool { return !strings.Contains(viewer.wantPage("audit"), "Redis did not answer") })
		})
	}
}

// If a right is missing, the part that needs it says which, and the others work.
func TestPagesWithoutARight(t *testing.T) {
	server := redistest.Start(t)
	if err := server.Client(t).Do(t.Context(), "acl", "setuser", "some", "on", ">p", "~*", "+@all", "-xrevrange").Err(); err != nil {
		t.Fatal(err)
	}
	client := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "some", "p" })
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	attach(t, limiter, steered)
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	wantParts(t, viewer.wantPage("audit"), "Redis refuses this part. Other parts may work: NOPERM", "xrevrange")
	for _, path := range []string{"", "offenders", "bans", "subject?subject=user:alice"} {
		if text := lines(viewer.wantPage(path)); strings.Contains(text, "Redis refuses") {
			t.Errorf("%q: %s", path, text)
		}
	}
}
