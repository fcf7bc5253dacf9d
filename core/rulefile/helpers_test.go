package rulefile

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// registered are the functions that the files of testdata name.
var registered = Functions{
	Keys:     map[string]core.KeyFunc{"tenant": core.ByHost},
	Plans:    map[string]func(core.Request) (string, error){"plan_of": planOf},
	LimitFor: map[string]func(core.Request) (core.Limit, error){"contract": contract},
	Costs:    map[string]func(core.Request) int{"by_size": core.CostBySize(1024)},
	Counts:   map[string]func(int) bool{"failed": func(status int) bool { return status == 401 }},
	Notes:    map[string]func(core.Request) string{"amount": core.Request.Path},
	Skips:    map[string]func(core.Request) bool{"is_probe": func(r core.Request) bool { return r.Path() == "/probe" }},
}

func planOf(r core.Request) (string, error) { return strings.Join(r.Header("X-Plan"), ""), nil }

func contract(core.Request) (core.Limit, error) { return core.PerSecond(7), nil }

func newLimiter(t testing.TB) *core.Limiter {
	t.Helper()
	verify := func(_ context.Context, token string) (string, error) { return token, nil }
	return limitertest.New(t, core.Options{Identify: core.BearerToken(verify), OnThreshold: func(context.Context, core.Threshold) {}, Logger: slog.New(slog.DiscardHandler)})
}

// write writes a file into a new folder and returns its path.
func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load loads files with the registered functions.
func load(t testing.TB, paths ...string) (*Set, error) {
	t.Helper()
	return Load(newLimiter(t), registered, paths...)
}

// loadText loads a file with one rule, with the given fields.
func loadText(t testing.TB, text string) *Set {
	t.Helper()
	set, err := load(t, write(t, "limits.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// errorsOf returns the errors that Load joined.
func errorsOf(t testing.TB, err error) (found []*Error) {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("not joined: %v", err)
	}
	for _, one := range joined.Unwrap() {
		if e := new(*Error); errors.As(one, e) {
			found = append(found, *e)
		}
	}
	return found
}

// loadBytes loads what a file of this name would hold.
func loadBytes(t testing.TB, limiter *core.Limiter, name string, data []byte) (*Set, error) {
	t.Helper()
	first, err := loadSources(limiter, registered, func(wrong *problems) []source {
		wrong.files = []string{name}
		return []source{fileSource(name, data)}
	})
	if err != nil {
		return nil, err
	}
	return newSet(limiter, registered, nil, first)
}

// rounds returns how many rounds a test has: few, or many with ACCESSLIMIT_LONG set.
func rounds(few, many int) int {
	if os.Getenv("ACCESSLIMIT_LONG") != "" {
		return many
	}
	return few
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
