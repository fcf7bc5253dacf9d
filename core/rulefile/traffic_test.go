package rulefile

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/rulefile/internal/filewatch"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// traffic is a service under load, whose rules are in files that a test changes.
type traffic struct {
	*testing.T
	dir     string
	limiter *core.Limiter
	set     *Set
	handler http.Handler // of the rules a and b, which always change together
	spent   http.Handler // of a rule that refuses every call
	written atomic.Int64 // the newest version that is complete, or nearly
	inForce atomic.Int64 // the newest version that calls have seen
	calls   atomic.Int64 // that passed
}

// ruleText returns some rules of a version.
func ruleText(version int64, names ...string) string {
	text := "version: 1\nrules:\n"
	for _, name := range names {
		text += fmt.Sprintf("  - {name: %s, limit: %d/h, on_store_error: fail_closed}\n", name, firstMax+version)
	}
	return text
}

// spentText is a rule that is the same in all versions.
const spentText = "  - {name: spent, limit: 1/h, on_store_error: fail_closed}\n"

func allRules(version int64) string { return ruleText(version, "a", "b") + spentText }

// newLoad returns a service with the rules of version 0 in its folder.
func newLoad(t *testing.T, options core.Options, c filewatch.Config, prepare func(*traffic), paths ...string) *traffic {
	t.Helper()
	l := &traffic{T: t, dir: t.TempDir()}
	options.Timeout, options.Logger = time.Minute, slog.New(slog.DiscardHandler)
	options.OnDecision = func(ctx context.Context, e core.Event) {
		if d, ok := ctx.Value(l).(*core.Decision); ok {
			*d = e.Decision
		}
	}
	limiter := limitertest.New(t, options)
	l.limiter = limiter
	prepare(l)
	for i, path := range paths {
		paths[i] = l.path(path)
	}
	l.set = follow(t, limiter, c, paths...)
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	l.handler = nethttplimit.With(l.set.MustGuard("a", "b"))(nothing)
	l.spent = nethttplimit.With(l.set.MustGuard("spent"))(nothing)
	if status, d := l.decide(l.spent); status != http.StatusOK {
		t.Fatalf("the first call: %d, %+v", status, d)
	}
	return l
}

// decide makes a call, and returns its status and what decided it.
func (l *traffic) decide(h http.Handler) (status int, d core.Decision) {
	r := httptest.NewRequestWithContext(context.WithValue(l.Context(), l, &d), "GET", "/", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, d
}

// call makes one call of each kind. It fails unless one version decides it as a whole, which is
// neither older than what is known to be in force, nor newer than what is written.
func (l *traffic) call() {
	oldest := l.inForce.Load()
	status, d := l.decide(l.handler)
	if status != http.StatusOK || d.Reason != core.Allowed || len(d.All) != 2 {
		l.Errorf("%d, %+v", status, d)
		return
	}
	l.calls.Add(1)
	version := int64(d.All[0].Limit.Max - firstMax)
	if other := int64(d.All[1].Limit.Max - firstMax); version != other {
		l.Errorf("decided by the versions %d and %d", version, other)
	}
	if newest := l.written.Load(); version < oldest || version > newest {
		l.Errorf("version %d decides, want %d to %d", version, oldest, newest)
	}
	for seen := l.inForce.Load(); version > seen && !l.inForce.CompareAndSwap(seen, version); seen = l.inForce.Load() {
	}
	if status, d := l.decide(l.spent); status != http.StatusTooManyRequests || d.Reason != core.LimitExceeded {
		l.Errorf("a limit that is used up: %d, %+v", status, d)
	}
}

// run makes calls while the versions are written in all of these ways, one after the other.
func (l *traffic) run(ways []way) {
	l.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			for ctx.Err() == nil {
				l.call()
			}
		})
	}
	for range rounds(1, 50) {
		for _, way := range ways {
			version := l.written.Load() + 1
			way.prepare(l, version)
			l.written.Store(version)
			way.complete(l, version)
			await(l.T, way.name, func() bool { return l.inForce.Load() == version })
		}
	}
	stop()
	callers.Wait()
	status, d := l.decide(l.handler)
	if left := int(firstMax + l.written.Load() - l.calls.Load() - 1); status != http.StatusOK || d.All[0].Remaining != left || d.All[1].Remaining != left {
		l.Errorf("after %d calls: %d, %+v; want %d left", l.calls.Load()+1, status, d, left)
	}
}

// way is a way to write a version. No version may be in force while it is prepared.
type way struct {
	name              string
	prepare, complete func(l *traffic, version int64)
}

func (l *traffic) path(name string) string { return filepath.Join(l.dir, name) }

func (l *traffic) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *traffic) write(name, text string) {
	l.Helper()
	l.must(os.MkdirAll(filepath.Dir(l.path(name)), 0o700))
	l.must(os.WriteFile(l.path(name), []byte(text), 0o600))
}

// add appends to a file.
func (l *traffic) add(name, text string) {
	l.Helper()
	file, err := os.OpenFile(l.path(name), os.O_WRONLY|os.O_APPEND, 0)
	l.must(err)
	_, err = file.WriteString(text)
	l.must(err)
	l.must(file.Close())
}

func (l *traffic) rename(from, to string) { l.Helper(); l.must(os.Rename(l.path(from), l.path(to))) }

// link makes a link, or replaces it in one step.
func (l *traffic) link(target, name string) {
	l.Helper()
	l.must(os.MkdirAll(filepath.Dir(l.path(name)), 0o700))
	l.must(os.Symlink(target, l.path(name)+".new"))
	l.rename(name+".new", name)
}

// refused waits until the Set has refused the files with this error.
func (l *traffic) refused(part string) {
	l.Helper()
	await(l.T, part, func() bool { return strings.Contains(lastError(l.limiter), part) })
}

// awaitCalls waits until more calls were made.
func (l *traffic) awaitCalls() {
	l.Helper()
	before := l.calls.Load()
	await(l.T, "more calls", func() bool { return l.calls.Load() > before+10 })
}
