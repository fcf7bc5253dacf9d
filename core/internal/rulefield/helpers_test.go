package rulefield_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// onPage returns what the page shows of a rule.
func onPage(t *testing.T, rule string) string {
	t.Helper()
	limiter, guard := attach(t, rule)
	defer runtime.KeepAlive(guard)
	page, err := console.New(limiter, console.Options{
		Authorize: func(*http.Request) (console.Identity, error) {
			return console.Identity{Name: "alice", Role: console.Viewer}, nil
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "/api/rules", nil))
	var answer struct {
		Rules []map[string]any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Rules) != 1 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	delete(answer.Rules[0], "version")
	delete(answer.Rules[0], "places")
	return fmt.Sprint(answer.Rules[0])
}

// explained returns what Inspect says of a rule, in JSON.
func explained(t *testing.T, rule string) string {
	t.Helper()
	limiter, guard := attach(t, rule)
	defer runtime.KeepAlive(guard)
	report, err := operate.New(limiter).Inspect(context.Background(), "user:alice")
	if err != nil || len(report.Rules) != 1 {
		t.Fatalf("%v: %v", report, err)
	}
	text, err := json.Marshal(report.Rules[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// attach attaches a rule of a file.
func attach(t *testing.T, rule string) (*core.Limiter, *core.Guard) {
	t.Helper()
	limiter := newLimiter(t)
	set, err := rulefile.Load(limiter, functions, file(t, rule))
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, set.Close)
	return limiter, set.MustGuard(set.Names()...)
}

// functions are those that the examples name.
var functions = rulefile.Functions{
	Plans:    map[string]func(core.Request) (string, error){"f": func(core.Request) (string, error) { return "", nil }},
	LimitFor: map[string]func(core.Request) (core.Limit, error){"f": func(core.Request) (core.Limit, error) { return core.Limit{}, nil }},
	Costs:    map[string]func(core.Request) int{"f": func(core.Request) int { return 1 }},
	Counts:   map[string]func(int) bool{"f": func(int) bool { return true }},
	Notes:    map[string]func(core.Request) string{"f": core.Request.Path},
	Skips:    map[string]func(core.Request) bool{"f": func(core.Request) bool { return false }},
}

func newLimiter(t *testing.T) *core.Limiter {
	t.Helper()
	return limitertest.New(t, core.Options{
		Identify: func(core.Request) (string, error) { return "", nil }, OnThreshold: func(context.Context, core.Threshold) {},
	})
}

// file writes a file with a rule, and returns its path.
func file(t *testing.T, rule string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	text := "version: 1\nrules:\n  - " + strings.ReplaceAll(rule, "\n", "\n    ") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, rule string) *rulefile.Set {
	t.Helper()
	set, err := rulefile.Load(newLimiter(t), functions, file(t, rule))
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, set.Close)
	return set
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// propertiesOfARule returns the fields of a rule in the schema of files.
func propertiesOfARule(t *testing.T) map[string]struct{ Description string } {
	t.Helper()
	var schema struct {
		Properties struct {
			Rules struct {
				Items struct {
					Properties map[string]struct{ Description string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../../rulefile/schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	return schema.Properties.Rules.Items.Properties
}
