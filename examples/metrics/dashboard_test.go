package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
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
	if found != 36 {
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
