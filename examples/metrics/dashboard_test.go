package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

const (
	folder = "../../promlimit/"
	// A scrape is every 15 s, for 2 min. Rates, of the last minute, need exact times: pages are recorded.
	scrapes, every, window = 9, 15 * time.Second, 4
)

// A real Prometheus scrapes both paths of the example under a known load. Every expression of the
// dashboard has the same result for both, and the numbers are those of the load.
func TestDashboard(t *testing.T) {
	load := newLoad(t)
	load.run()
	wantDocumented(t, load.pages["metrics"][scrapes-1])
	last := time.Now().Truncate(time.Second).Add(time.Minute) // so the age of the rules is more than a rounding error
	prometheus := startPrometheus(t, load.config(last))
	for _, job := range []string{"metrics", "otel"} {
		prometheus.await(fmt.Sprintf(`accesslimit_keys{job=%q,limiter="memory"}`, job), last)
	}
	want := load.expected(last)
	for id, expr := range expressions(t) {
		for _, job := range []string{"metrics", "otel"} {
			t.Run(id+" "+job, func(t *testing.T) {
				expr := strings.NewReplacer("$job", job, "$limiter", ".*", "$__rate_interval", "1m").Replace(expr)
				found, _ := prometheus.query(expr, last)
				got := make(map[string]float64)
				for _, s := range found {
					got[text(s.labels)] = s.value
				}
				if !maps.EqualFunc(got, want[id], alike) || len(got) == 0 {
					t.Errorf("%s is\n%v, want\n%v", expr, got, want[id])
				}
			})
		}
		delete(want, id)
	}
	if len(want) > 0 {
		t.Errorf("the dashboard does not have %v", slices.Collect(maps.Keys(want)))
	}
	for alert, expr := range alerts(t) {
		found, _ := prometheus.query(expr, last)
		jobs := make(map[string]bool)
		for _, s := range found {
			jobs[s.labels["job"]] = true
		}
		want := 0
		if load.fires[alert] {
			want = 2
		}
		if len(jobs) != want && alert != "AccesslimitRedisSlow" { // a busy machine may be slow
			t.Errorf("%s: %v fires for %v, want %d jobs", alert, expr, found, want)
		}
	}
}

// wantDocumented checks that core/OPERATING.md lists every metric.
func wantDocumented(t *testing.T, metrics string) {
	t.Helper()
	page, err := os.ReadFile("../../core/OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(metrics) {
		if name, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, _, _ = strings.Cut(name, " ")
			if found++; !strings.Contains(string(page), "| `"+name+"` |") {
				t.Errorf("core/OPERATING.md does not list %s", name)
			}
		}
	}
	if found != 18 {
		t.Errorf("there are %d metrics", found)
	}
}

// promtool accepts the alert rules, which fire when they should.
func TestAlertRules(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", folder + "alerts.yml"}, {"test", "rules", folder + "alerts_test.yml"}} {
		if out, err := exec.Command(program(t, "promtool"), args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

func alike(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-6*math.Max(math.Abs(a), math.Abs(b))
}

// text returns labels in order, as "a=1 b=2".
func text(labels map[string]string) string {
	var all []string
	for name, value := range labels {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// expressions returns the expressions of the dashboard by the title of their panel and their letter.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	data, err := os.ReadFile(folder + "dashboard.json")
	if err == nil {
		err = json.Unmarshal(data, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			found[panel.Title+" "+target.RefID] = target.Expr
		}
	}
	return found
}

// alerts returns the expressions of the alert rules by their names.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(folder + "alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, rule := range strings.Split(string(data), "- alert: ")[1:] {
		name, rest, _ := strings.Cut(rule, "\n")
		_, rest, _ = strings.Cut(rest, "expr: ")
		expr, _, _ := strings.Cut(rest, "\n        for:")
		expr, _, _ = strings.Cut(expr, "\n        labels:")
		found[name] = strings.TrimPrefix(expr, "|")
	}
	return found
}

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
	t.Cleanup(func() { _ = dead.Close() })
	l := &load{t: t, pages: make(map[string][]string), limiters: map[string]*core.Limiter{
		"redis":  newLimiter(t, core.Options{Redis: redistest.Start(t).Client(t), Timeout: time.Minute}),
		"down":   newLimiter(t, core.Options{Redis: dead, Timeout: 20 * time.Millisecond}),
		"memory": newLimiter(t, core.Options{MaxKeys: 100}),
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

func newLimiter(t *testing.T, options core.Options) *core.Limiter {
	t.Helper()
	options.Logger = slog.New(slog.DiscardHandler)
	limiter, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limiter.Close)
	return limiter
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
		"AccesslimitWithoutRedis": true, "AccesslimitEvictions": true, "AccesslimitRulesFailed": true,
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
		for i := range 300 {
			l.call("/memory", fmt.Sprint(user, i))
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
	l.t.Cleanup(pages.Close)
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
