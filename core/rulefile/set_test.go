package rulefile

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// guarded is a service with one guard.
type guarded struct{ http.Handler }

func serve(t *testing.T, fields string) guarded {
	t.Helper()
	set := loadText(t, "version: 1\nrules:\n  - name: api\n    "+strings.ReplaceAll(fields, "\n", "\n    ")+"\n")
	guard := set.MustGuard("api")
	return guarded{nethttplimit.With(guard)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))}
}

// want calls the service and fails unless it answers with this status. The headers are names and
// values in turn.
func (s guarded) want(t *testing.T, status int, from, target string, headers ...string) {
	t.Helper()
	r := httptest.NewRequest("GET", target, nil)
	r.RemoteAddr = from
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != status {
		t.Errorf("%s from %s %v: %d, want %d", target, from, headers, w.Code, status)
	}
}

const alice, bob = "192.0.2.1:1", "198.51.100.2:2"

// The example in the package's documentation is one of the good files.
func TestDocumentedForm(t *testing.T) {
	want := must(os.ReadFile("testdata/good/complete.yaml"))
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if text := "//\t" + strings.ReplaceAll(strings.TrimSpace(string(want)), "\n", "\n//\t"); !strings.Contains(string(page), text) {
		t.Error("doc.go does not have testdata/good/complete.yaml")
	}
}

func TestValues(t *testing.T) {
	set := must(load(t, "testdata/good/complete.yaml"))
	api, _ := set.Rule("api")
	login, _ := set.Rule("login")
	search, _ := set.Rule("search")
	for name, got := range map[string][2]any{
		"limit":     {api.Limit, core.PerSecond(100)},
		"also":      {api.Also, []core.Limit{core.Per(5000, 5*time.Minute), core.PerCalendarDay(100_000, "UTC")}},
		"plans":     {api.Plans, map[string]core.Limit{"free": core.PerSecond(10), "internal": core.Unlimited}},
		"ban":       {api.Ban, core.Ban{After: 5, For: 15 * time.Minute, Max: 24 * time.Hour}},
		"paths":     {api.Paths, []string{"/api/**"}},
		"except":    {api.Except, []string{"/health", "/api/docs/**"}},
		"methods":   {api.Methods, []string{"GET", "POST"}},
		"policy":    {api.OnStoreError, core.CountLocally(0.25)},
		"message":   {api.Message, "Please slow down."},
		"modes":     {[]core.Mode{api.Mode, login.Mode}, []core.Mode{core.DryRun, core.Enforce}},
		"flags":     {[]bool{api.NeedLogin, login.NeedLogin}, []bool{true, false}},
		"warn":      {api.Warn, []float64{0.8, 1}},
		"seconds":   {[]int{login.Seconds, login.MaxCount}, []int{900, 5}},
		"closed":    {login.OnStoreError, core.FailClosed},
		"lease":     {search.Lease, 1000},
		"functions": {login.Count(401) && !login.Count(200), true},
	} {
		if !reflect.DeepEqual(got[0], got[1]) {
			t.Errorf("%s is %v, want %v", name, got[0], got[1])
		}
	}
}

func TestKeys(t *testing.T) {
	for key, headers := range map[string][2]string{
		"header:X-Api-Key": {"X-Api-Key", "k"},
		"tenant":           {"Host", ""},
		"host":             {"Host", ""},
		"global":           {"Host", ""},
		"route":            {"Host", ""},
		"user":             {"Authorization", "Bearer alice"},
	} {
		s := serve(t, "limit: 1/h\nkey: "+key)
		s.want(t, 200, alice, "/", headers[0], headers[1])
		s.want(t, 429, bob, "/", headers[0], headers[1])
	}
	for _, key := range []string{"ip", "[host, ip]", "value:account", "param:id"} {
		s := serve(t, "limit: 1/h\nkey: "+key)
		s.want(t, 200, alice, "/")
		s.want(t, 200, bob, "/")
		s.want(t, 429, alice, "/")
	}
	s := serve(t, "limit: 1/h\nkey: [query:team, ip]")
	s.want(t, 200, alice, "/?team=a")
	s.want(t, 200, alice, "/?team=b")
	s.want(t, 429, alice, "/?team=a")
}

func TestSkip(t *testing.T) {
	s := serve(t, "limit: 1/h\nkey: global\nskip:\n  addresses: [192.0.2.0/24, \"2001:db8::1\"]\n  paths: [/health]\n  function: is_probe")
	for range 2 {
		s.want(t, 200, alice, "/")
		s.want(t, 200, "[2001:db8::1]:1", "/")
		s.want(t, 200, "[::ffff:192.0.2.9]:1", "/")
		s.want(t, 200, bob, "/health")
		s.want(t, 200, bob, "/probe")
	}
	s.want(t, 200, bob, "/")
	s.want(t, 429, bob, "/")
	s.want(t, 429, "[2001:db8::2]:1", "/")
	s.want(t, 429, "", "/") // a call without an address
	s.want(t, 429, bob, "/health/../")
}

func TestGuardErrors(t *testing.T) {
	path := write(t, "limits.yaml", "version: 1\nrules:\n  - {name: api, limit: 2/h}\n")
	limiter := newLimiter(t)
	set := must(Load(limiter, Functions{}, path))
	if _, err := set.Guard("apo"); err == nil || err.Error() != `rulefile: no rule "apo" (did you mean "api"?) in the files; the rules there: api` {
		t.Error(err)
	}
	if _, err := set.Guard(); err == nil {
		t.Error("no error for no rule")
	}
	if rule, ok := set.Rule("apo"); ok {
		t.Errorf("a rule that is not there: %+v", rule)
	}
	if stats := limiter.Stats(); len(stats.Decisions) != 0 {
		t.Errorf("a set that was not attached is in the Stats: %v", stats.Decisions)
	}
	limiter.MustGuard(core.Rule{Name: "api", Limit: core.PerHour(3)}) // nor has it claimed the name
	_, err := set.Guard("api")
	var wrong *core.RuleError
	inGo := regexp.MustCompile(`^` + regexp.QuoteMeta(path) +
		`:3:5: rule "api": name: stands for 3/h on this Limiter already \(.*set_test.go:\d+\), and here for 2/h: one name, one limit$`)
	if !errors.As(err, &wrong) || !inGo.MatchString(err.Error()) {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("MustGuard does not panic")
		}
	}()
	set.MustGuard("api")
}

// reload writes a set's file and reloads it.
func reload(t *testing.T, set *Set, text string) error {
	t.Helper()
	if err := os.WriteFile(set.paths[0], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return set.Reload()
}

// Guards follow the files, as soon as Reload has returned.
func TestReload(t *testing.T) {
	set := loadText(t, "version: 1\nrules:\n  - {name: api, limit: 1/h}\n")
	s, first := guarded{nethttplimit.With(set.MustGuard("api"))(http.NotFoundHandler())}, set.Version()
	s.want(t, 404, alice, "/")
	s.want(t, 429, alice, "/")
	if err := reload(t, set, "version: 1\nrules:\n  - {name: api, limit: 2/h}\n  - {name: new, limit: 9/s}\n"); err != nil {
		t.Fatal(err)
	}
	second := set.Version()
	if second == first || !slices.Equal(set.Names(), []string{"api", "new"}) {
		t.Errorf("version %s after %s has %v", second, first, set.Names())
	}
	s.want(t, 404, alice, "/")
	s.want(t, 429, alice, "/")
	want := set.paths[0] + `:3:5: rule "api": name: is attached (` + "core/rulefile/set_test.go:"
	if err := reload(t, set, oneRule("apo")); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %q, want %q", err, want)
	}
	s.want(t, 429, alice, "/")
	if stats := set.limiter.Stats().RuleSets; len(stats) != 1 || stats[0].Version != second || !strings.HasPrefix(stats[0].LastError, want) {
		t.Errorf("the Stats have %+v", stats)
	}
}

// A rule in Go with the name of one in a file must have its limit. The error names both places,
// whichever comes second.
func TestTheSameNameInGo(t *testing.T) {
	set := loadText(t, rulesText("api", "limit: 1/h"))
	guard := set.MustGuard("api")
	_, err := set.limiter.Guard(core.Rule{Name: "api", Limit: core.PerHour(2)})
	want := `stands for 1/h on this Limiter already (` + set.paths[0] + `:3:5), and here (` + "core/rulefile/set_test.go:"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if _, err := set.limiter.Guard(core.Rule{Name: "api", Limit: core.PerHour(1)}); err != nil {
		t.Error(err)
	}
	err = reload(t, set, rulesText("api", "limit: 2/h"))
	want = set.paths[0] + `:3:5: rule "api": name: stands for 1/h on this Limiter already (` + "core/rulefile/set_test.go:"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
	runtime.KeepAlive(guard)
}

// A reload that changes nothing keeps the version. It is a success: the last error is over. The log
// has what a reload has changed.
func TestReloadOfTheSame(t *testing.T) {
	var log logtest.Log
	limiter := limitertest.New(t, core.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	first, second := rulesText("api", "limit: 1/h"), rulesText("api", "limit: 2/h")
	set := must(Load(limiter, registered, write(t, "limits.yaml", first)))
	guard := set.MustGuard("api")
	since := limiter.Stats().RuleSets[0].Since
	if reload(t, set, "version: 2") == nil || limiter.Stats().RuleSets[0].LastError == "" {
		t.Error("no error")
	}
	if err := reload(t, set, first); err != nil {
		t.Error(err)
	}
	if stats := limiter.Stats().RuleSets[0]; stats.LastError != "" || !stats.Since.Equal(since) || strings.Contains(log.String(), "are in force") {
		t.Errorf("the Stats have %+v", stats)
	}
	if err := reload(t, set, second); err != nil {
		t.Error(err)
	}
	if want := `"changes":["rule \"api\": limit 1/h becomes 2/h: counters keep their use"]`; !strings.Contains(log.String(), want) {
		t.Errorf("the log has %s, want %s", log.String(), want)
	}
	runtime.KeepAlive(guard)
}
