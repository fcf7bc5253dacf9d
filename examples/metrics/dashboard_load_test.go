package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// load is a known load on three limiters, and what their metrics were after each step of it.
type load struct {
	t        *testing.T
	limiters map[string]*core.Limiter
	service  http.Handler
	set      *core.RuleSet
	stats    []map[string]core.Stats // after each step
	pages    map[string][]string     // by the job
	fires    map[string]bool         // the alerts that fire after the last step
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func newLoad(t *testing.T) *load {
	redis.SetLogger(silent{}) // it reports each dial that fails
	dead := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	bounded.Cleanup(t, func() { _ = dead.Close() })
	l := &load{t: t, pages: make(map[string][]string), limiters: map[string]*core.Limiter{
		"redis":  extensiontest.NewLimiter(t, core.Options{Redis: redistest.Start(t).Client(t), Timeout: time.Minute}),
		"down":   extensiontest.NewLimiter(t, core.Options{Redis: dead, Timeout: 20 * time.Millisecond}),
		"memory": extensiontest.NewLimiter(t, core.Options{MaxKeys: 100}),
	}}
	key := core.ByHeader("X-User")
	limited, err := l.limiters["redis"].RuleSet(core.Rule{Name: "limited", Seconds: 3600, MaxCount: 5, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	l.set = limited
	mux := http.NewServeMux()
	handle := func(path string, middleware func(http.Handler) http.Handler) {
		mux.Handle(path, middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	}
	handle("/limited", nethttplimit.With(limited.MustGuard("limited")))
	handle("/tried", nethttplimit.New(l.limiters["redis"], core.Rule{Name: "tried", Seconds: 3600, MaxCount: 3, Key: key, Mode: core.DryRun}))
	handle("/memory", nethttplimit.New(l.limiters["memory"], core.Rule{Name: "memory", Seconds: 3600, Key: key}))
	for name, policy := range map[string]core.StorePolicy{"open": core.FailOpen, "closed": core.FailClosed, "local": core.CountLocally(0.5)} {
		handle("/"+name, nethttplimit.New(l.limiters["down"], core.Rule{Name: name, Seconds: 3600, Key: key, OnStoreError: policy}))
	}
	if err := addMetrics(mux, l.limiters); err != nil {
		t.Fatal(err)
	}
	l.service = mux
	return l
}

// run makes the calls of each step, and scrapes afterwards.
func (l *load) run() {
	for l.limiters["down"].Stats().Shards == nil || l.limiters["down"].Stats().Shards[0].Breaker == "closed" {
		l.call("/open", "user")
	}
	if err := l.set.Replace("8", core.Rule{Name: "limited", Seconds: 3600, MaxCount: 5, Key: core.ByHeader("X-User")}); err != nil {
		l.t.Fatal(err)
	}
	if err := l.set.Replace("9", core.Rule{Name: "limited", Seconds: -1}); err == nil {
		l.t.Fatal("the set took a wrong rule")
	}
	l.fires = map[string]bool{
		"AccesslimitWithoutRedis": true, "AccesslimitEvictions": true, "AccesslimitRulesFailed": true, "AccesslimitCostsNotCharged": true,
	}
	for step := range scrapes {
		user := fmt.Sprint("user", step)
		for range 12 {
			l.call("/limited", user)
		}
		for range 4 {
			l.call("/tried", user)
		}
		for _, path := range []string{"/open", "/open", "/closed", "/local"} {
			l.call(path, user)
		}
		l.spend(user)
		l.goOut(user)
		for i := range 300 {
			l.call("/memory", fmt.Sprint(user, i))
		}
		for l.limiters["redis"].Stats().DryRunsNow > 0 {
			time.Sleep(time.Millisecond)
		}
		stats := make(map[string]core.Stats)
		for name, limiter := range l.limiters {
			stats[name] = limiter.Stats()
		}
		l.stats = append(l.stats, stats)
		l.pages["metrics"] = append(l.pages["metrics"], l.call("/metrics", ""))
		l.pages["otel"] = append(l.pages["otel"], l.call("/otel", ""))
	}
}

func (l *load) call(path, user string) (body string) {
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("X-User", user)
	w := httptest.NewRecorder()
	l.service.ServeHTTP(w, r)
	return w.Body.String()
}

// config returns a configuration by which Prometheus scrapes the pages, as if the last one were of
// this time. Its relabeling is that of core/OPERATING.md.
func (l *load) config(last time.Time) string {
	mux := http.NewServeMux()
	for job, pages := range l.pages {
		mux.HandleFunc("/"+job, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			for i, page := range pages {
				at := last.Add(-time.Duration(len(pages)-1-i) * every).UnixMilli()
				for line := range strings.Lines(page) {
					if !strings.HasPrefix(line, "#") {
						fmt.Fprintf(w, "%s %d\n", strings.TrimSuffix(line, "\n"), at)
					}
				}
			}
		})
	}
	pages := httptest.NewServer(mux)
	bounded.Cleanup(l.t, pages.Close)
	operations, err := os.ReadFile("../../core/OPERATING.md")
	if err != nil {
		l.t.Fatal(err)
	}
	_, relabel, _ := strings.Cut(string(operations), "```yaml\nmetric_relabel_configs:\n")
	relabel, _, ok := strings.Cut(relabel, "```")
	if !ok {
		l.t.Fatal("core/OPERATING.md does not say how to relabel the metrics of OpenTelemetry")
	}
	target := strings.TrimPrefix(pages.URL, "http://")
	return fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- {job_name: metrics, static_configs: [targets: [%q]]}
- job_name: otel
  metrics_path: /otel
  static_configs: [targets: [%q]]
  metric_relabel_configs:
%s`, target, target, "  "+strings.ReplaceAll(strings.TrimSuffix(relabel, "\n"), "\n", "\n  ")+"\n")
}
