package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/extensiontest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Three processes follow a document, one of them a canary's, while Redis is stopped, killed,
// restarted with its data, full, and restarted empty. After that the processes start anew. In each
// case, exactly the alerts that are true fire in a real Prometheus, the logs have exactly the lines
// that are true, and the operators' page and doctor say the same.
//
// It takes minutes, because Prometheus must see each state for some time, so it runs only with
// ACCESSLIMIT_CHAOS=1. TestAlertRules tries the same alerts with made-up series.
func TestDrill(t *testing.T) {
	if os.Getenv("ACCESSLIMIT_CHAOS") == "" {
		return
	}
	d := startDrill(t)
	d.wantAlerts("all is well, and the canary has another text")
	d.wantPages("all is well", "", "Redis answers, in")
	d.wantProblems("all is well")
	texts, versions := d.rules("digest"), d.rules("version")

	d.redis.Stop()
	d.wantAlerts("Redis stands still", "AccesslimitWithoutRedis")
	d.wantLines("Redis stands still", notRead, "the store does not answer", "is tried once in a while")
	d.wantCause("open", "closed", "local", "unreachable")
	d.wantPages("Redis stands still", "", "Redis did not answer", "The rules cannot be read")
	d.wantPages("Redis stands still", "bans", "This process knows 1 ban", "user:mallory")
	d.redis.Continue()
	d.wantAlerts("Redis goes on")
	d.wantLines("Redis goes on", "the latest ones again")

	d.redis.Kill()
	d.wantAlerts("Redis was killed", "AccesslimitWithoutRedis")
	d.wantLines("Redis was killed", notRead)
	d.wantCause("unreachable")
	d.redis.Restart()
	d.wantAlerts("Redis is back with its data")
	d.wantLines("Redis is back with its data", "the latest ones again")

	d.limitMemory("1")
	d.wantAlerts("Redis is full", "AccesslimitWithoutRedis")
	d.wantLines("Redis is full", refuses)
	d.wantCause("open", "closed", "local", "refused_by_redis")
	d.wantPages("Redis is full", "", "Redis refuses to count: refused_by_redis: OOM")
	d.wantProblems("Redis is full", "memory")
	d.limitMemory("0")
	d.wantAlerts("Redis has room again")
	d.wantPages("Redis has room again", "", "Redis answers, in")
	d.wantProblems("Redis has room again")

	if err := d.redis.Client(t).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	d.redis.Restart()
	d.wantAlerts("Redis is back, and empty", "AccesslimitRedisLostData", "AccesslimitRulesLost")
	d.wantLines("Redis is back, and empty", lostData, lostRules)
	d.wantPages("Redis is back, and empty", "", "has lost everything", "Redis has lost these rules")
	d.wantProblems("Redis is back, and empty", "losses")
	d.wantBan("Redis is back, and empty")
	d.restartProcesses()
	d.wantAlerts("a deploy after the loss", "AccesslimitRulesFallback")
	d.wantLines("a deploy after the loss", noRules)
	d.wantPages("a deploy after the loss", "", "has lost everything", "The fallback is in force")
	d.wantProblems("a deploy after the loss", "losses")
	d.publish()
	d.wantAlerts("the documents were published again")
	if now := d.rules("digest"); now != texts {
		d.Errorf("published again, the texts are %s, want %s", now, texts)
	}
	if now := d.rules("version"); now == versions {
		d.Errorf("published again, the versions are %s as before", now)
	}
	d.wantOnly(
		notRead, lostData, lostRules, lostBan, noRules, refuses, "the store does not answer", "is tried once in a while", "no connection to Redis can be set up", "LOADING",
	)
}

const (
	notRead   = "the rules cannot be read"
	lostData  = "Redis has lost data: counters, the audit, and the document"
	lostRules = "Redis has lost the rules, so the present ones stay in force"
	lostBan   = `and this process has written them back","marks":1`
	refuses   = "the store answers with an error"
	noRules   = `"level":"WARN","msg":"accesslimit: there is no document with rules, so the fallback is in force"`
)

// drill is a fleet that a Prometheus watches.
type drill struct {
	*testing.T
	redis      *redistest.Server
	processes  []*exec.Cmd
	addrs      []string // of the processes
	logs       []string // the files
	seen       []int    // how much of each log belongs to what has happened before
	alerts     map[string]string
	prometheus *server
}

func startDrill(t *testing.T) *drill {
	d := &drill{T: t, redis: redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always"), alerts: alerts(t)}
	d.publish()
	for _, document := range []string{"accesslimit", "accesslimit", "canary"} {
		d.addProcess(document)
	}
	d.seen = make([]int, len(d.logs))
	text, err := os.ReadFile(folder + "alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(t.TempDir(), "alerts.yml")
	if err := os.WriteFile(rules, []byte(hurried(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	list, _ := json.Marshal(d.addrs)
	d.prometheus = startPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
- {job_name: shop, static_configs: [targets: %s]}
`, rules, list))
	if !redistest.WaitUntil(func() bool {
		found, _ := d.prometheus.query(`count(rate(accesslimit_store_calls_total[4s]) > 0) == 3`, time.Now())
		return len(found) > 0
	}, 2*time.Minute) {
		t.Fatal("Prometheus does not see three processes that ask Redis")
	}
	return d
}

// hurried returns alert rules in which each minute takes two seconds.
func hurried(rules string) string {
	return regexp.MustCompile(`\b(\d+)m\b`).ReplaceAllStringFunc(rules, func(minutes string) string {
		n, _ := strconv.Atoi(strings.TrimSuffix(minutes, "m"))
		return fmt.Sprintf("%ds", 2*n)
	})
}

// publish publishes the documents: that of the canary has another text.
func (d *drill) publish() {
	d.Helper()
	for prefix, limit := range map[string]int{"accesslimit": 1_000_000, "canary": 2_000_000} {
		document, err := rulefile.NewDocument(d.redis.Client(d), prefix)
		if err != nil {
			d.Fatal(err)
		}
		if _, err := document.Write(context.Background(), drillRules(limit), rulefile.Version{}); err != nil {
			d.Fatal(err)
		}
	}
}

// addProcess starts a process that follows a document.
func (d *drill) addProcess(document string) {
	d.Helper()
	addr, i, log := freeAddr(d.T), len(d.processes), filepath.Join(d.TempDir(), "log")
	d.addrs = append(d.addrs, addr)
	d.logs, d.processes = append(d.logs, log), append(d.processes, &exec.Cmd{
		Path: os.Args[0], Env: append(os.Environ(), drillAddr+"="+addr, drillRedis+"="+d.redis.Addr(), drillDocument+"="+document),
	})
	d.startProcess(i)
	bounded.Cleanup(d, func() {
		d.endProcess(i)
		if text, _ := os.ReadFile(log); d.Failed() {
			d.Logf("the process with the document %s says:\n%s", document, text)
		}
	})
}

func (d *drill) startProcess(i int) {
	d.Helper()
	log, err := os.OpenFile(d.logs[i], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		d.Fatal(err)
	}
	defer log.Close()
	d.processes[i].Stderr = log
	if err := d.processes[i].Start(); err != nil {
		d.Fatal(err)
	}
}

func (d *drill) endProcess(i int) {
	_ = d.processes[i].Process.Kill()
	_ = d.processes[i].Wait()
}

// restartProcesses ends all processes, and starts them anew, as a deploy does.
func (d *drill) restartProcesses() {
	d.Helper()
	for i, ended := range d.processes {
		d.endProcess(i)
		d.processes[i] = &exec.Cmd{Path: ended.Path, Env: ended.Env}
		d.startProcess(i)
	}
}

// rules waits until Prometheus sees the rules of all processes, and returns a label of each document's.
func (d *drill) rules(label string) (values string) {
	d.Helper()
	expr := fmt.Sprintf(`count by (document, %s) (accesslimit_rules_info)`, label)
	if !redistest.WaitUntil(func() bool {
		processes, labels := make(map[string]float64), make(map[string]string)
		found, _ := d.prometheus.query(expr, time.Now())
		for _, one := range found {
			document := one.labels["document"]
			processes[document], labels[document] = one.value, one.labels[label]
		}
		values = fmt.Sprint(labels)
		return len(found) == 2 && processes["accesslimit"] == 2 && processes["canary"] == 1
	}, 2*time.Minute) {
		d.Fatalf("the rules of two documents, in three processes, are %s", values)
	}
	return values
}

// wantAlerts waits until exactly these alerts are true, and those among them that are critical fire.
func (d *drill) wantAlerts(when string, alerts ...string) {
	d.Helper()
	slices.Sort(alerts)
	var now, firing []string
	is := func() bool {
		now, firing = d.now(), d.firing()
		return slices.Equal(now, alerts) && slices.Equal(firing, alerts)
	}
	if !redistest.WaitUntil(is, 2*time.Minute) {
		d.Fatalf("%s: %q are true and %q fire, want %q", when, now, firing, alerts)
	}
}

// now returns the alerts whose expressions are true.
func (d *drill) now() (names []string) {
	for name, expr := range d.alerts {
		found, ok := d.prometheus.query(hurried(expr), time.Now())
		if name != "AccesslimitRedisSlow" && (!ok || len(found) > 0) { // a busy machine may be slow
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// firing returns the alerts that fire, each as often as it does.
func (d *drill) firing() (names []string) {
	for _, alert := range d.prometheus.alerts() {
		if name := alert.Labels["alertname"]; alert.State == "firing" && name != "AccesslimitRedisSlow" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// wantCause waits until the critical alert has these words.
func (d *drill) wantCause(words ...string) {
	d.Helper()
	var text string
	is := func() bool {
		for _, alert := range d.prometheus.alerts() {
			if alert.Labels["alertname"] == "AccesslimitWithoutRedis" {
				text = alert.Annotations["summary"] + alert.Annotations["description"]
			}
		}
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	}
	if !redistest.WaitUntil(is, time.Minute) {
		d.Errorf("the alert says %q, want %q", text, words)
	}
}

// wantLines waits until each process has logged these lines since the last call.
func (d *drill) wantLines(when string, lines ...string) {
	d.Helper()
	for i, name := range d.logs {
		var text []byte
		for _, line := range lines {
			if !redistest.WaitUntil(func() bool {
				text, _ = os.ReadFile(name)
				return bytes.Contains(text[d.seen[i]:], []byte(line))
			}, time.Minute) {
				d.Errorf("%s: process %d does not log %q", when, i, line)
			}
		}
		d.seen[i] = len(text)
	}
}

// limitMemory sets how much memory Redis has.
func (d *drill) limitMemory(bytes string) {
	d.Helper()
	if err := d.redis.Client(d).ConfigSet(context.Background(), "maxmemory", bytes).Err(); err != nil {
		d.Fatal(err)
	}
}

// wantPages waits until the operators' page of each process has these texts.
func (d *drill) wantPages(when, path string, texts ...string) {
	d.Helper()
	for i, addr := range d.addrs {
		var page []byte
		if !redistest.WaitUntil(func() bool {
			reply, err := http.Get("http://" + addr + "/limits/" + path)
			if err != nil {
				return false
			}
			defer reply.Body.Close()
			page, _ = io.ReadAll(reply.Body)
			return !slices.ContainsFunc(texts, func(text string) bool { return !bytes.Contains(page, []byte(text)) })
		}, time.Minute) {
			d.Errorf("%s: the page %q of process %d lacks one of %q:\n%s", when, path, i, texts, page)
		}
	}
}

// wantBan waits until Redis has the ban.
func (d *drill) wantBan(when string) {
	d.Helper()
	operator := operate.New(extensiontest.NewLimiter(d.T, core.Options{Redis: d.redis.Client(d), Timeout: time.Minute}))
	var err error
	if !redistest.WaitUntil(func() (ok bool) {
		_, ok, err = operator.BanOf(context.Background(), "open", "user:mallory")
		return ok
	}, time.Minute) {
		d.Errorf("%s: it has no ban: %v", when, err)
	}
}

// wantProblems checks the codes of the problems that doctor finds.
func (d *drill) wantProblems(when string, codes ...string) {
	d.Helper()
	limiter := extensiontest.NewLimiter(d.T, core.Options{Redis: d.redis.Client(d), Timeout: time.Minute})
	found, err := operate.New(limiter).Doctor(context.Background())
	if err != nil {
		d.Fatal(err)
	}
	var problems []string
	for _, f := range found {
		if f.Level == "problem" {
			problems = append(problems, f.Code)
		}
	}
	if !slices.Equal(problems, codes) {
		d.Errorf("%s: doctor finds the problems %q, want %q: %+v", when, problems, codes, found)
	}
}

// wantOnly fails if a process has logged a warning or an error that is not one of these.
func (d *drill) wantOnly(lines ...string) {
	d.Helper()
	for i, name := range d.logs {
		text, err := os.ReadFile(name)
		if err != nil {
			d.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			known := strings.Contains(line, `"level":"INFO"`) || slices.ContainsFunc(lines, func(is string) bool { return strings.Contains(line, is) })
			if !known || strings.Contains(line, "new rules cannot be used") {
				d.Errorf("process %d logs %s", i, line)
			}
		}
	}
}

// activeAlert is an alert that is pending or firing.
type activeAlert struct {
	Labels, Annotations map[string]string
	State               string
}

// alerts returns the alerts that are pending or firing.
func (s *server) alerts() []activeAlert {
	reply, err := http.Get("http://" + s.addr + "/api/v1/alerts")
	if err != nil {
		return nil
	}
	defer reply.Body.Close()
	var answer struct {
		Data struct{ Alerts []activeAlert }
	}
	if err := json.NewDecoder(reply.Body).Decode(&answer); err != nil {
		return nil
	}
	return answer.Data.Alerts
}
