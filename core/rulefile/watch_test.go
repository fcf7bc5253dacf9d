package rulefile

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/rulefile/internal/filewatch"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// quick has short periods. Its poll is so far away that only events bring a change.
var quick = filewatch.Config{Quiet: 10 * time.Millisecond, Poll: time.Hour}

// follow watches paths until the test ends.
func follow(t *testing.T, limiter *core.Limiter, c filewatch.Config, paths ...string) *Set {
	t.Helper()
	set, err := watch(limiter, registered, paths, c)
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, set.Close)
	return set
}

// lastError returns the error of the set that guards follow.
func lastError(limiter *core.Limiter) string { return limiter.Stats().RuleSets[0].LastError }

// firstMax is the Max of version 0 of the rules. That of version 1 is one more, and so on.
const firstMax = 1_000_000

func unprepared(*traffic, int64) {}

// fileWays are the ways to write one file.
var fileWays = []way{
	{"in place", unprepared, func(l *traffic, v int64) { l.write("x/limits.yaml", allRules(v)) }},
	{"mv", func(l *traffic, v int64) { l.write("x/.limits.yaml.tmp", allRules(v)) }, func(l *traffic, _ int64) {
		l.rename("x/.limits.yaml.tmp", "x/limits.yaml")
	}},
	{"half first", func(l *traffic, v int64) {
		text := allRules(v)
		l.write("x/limits.yaml", text[:len(text)/2])
		l.refused("x/limits.yaml:")
	}, func(l *traffic, v int64) {
		text := allRules(v)
		l.add("x/limits.yaml", text[len(text)/2:])
	}},
	{"removed first", func(l *traffic, _ int64) {
		l.must(os.Remove(l.path("x/limits.yaml")))
		l.refused("no such file")
	}, func(l *traffic, v int64) { l.write("x/limits.yaml", allRules(v)) }},
	{"wrong first", func(l *traffic, v int64) {
		l.write("x/limits.yaml", ruleText(v, "a")+spentText)
		l.refused("is attached")
		l.awaitCalls()
	}, func(l *traffic, v int64) { l.write("x/limits.yaml", allRules(v)) }},
}

// writeConfigMap writes a folder as kubelet does, with the files of the rules a and b.
func (l *traffic) writeConfigMap(v int64) {
	data := fmt.Sprintf("x/..%d/", v)
	l.write(data+"a.yaml", ruleText(v, "a"))
	l.write(data+"b.yaml", ruleText(v, "b")+spentText)
}

// configMapWays are the ways to write a folder of two files.
var configMapWays = []way{
	{"a ConfigMap", (*traffic).writeConfigMap, func(l *traffic, v int64) { l.link(fmt.Sprint("..", v), "x/..data") }},
	{"a ConfigMap whose old files are removed", (*traffic).writeConfigMap, func(l *traffic, v int64) {
		l.link(fmt.Sprint("..", v), "x/..data")
		l.must(os.RemoveAll(l.path(fmt.Sprint("x/..", v-1))))
	}},
}

// While files are changed in every way, no call is decided by half a version, or for a wrong
// reason. The old version is in force until the new one is complete, and in the end the new one is.
func TestWatchUnderLoad(t *testing.T) {
	redis := core.Options{Redis: redistest.Start(t).Client(t)}
	t.Run("a file", func(t *testing.T) {
		t.Parallel()
		newLoad(t, redis, quick, func(l *traffic) { l.write("x/limits.yaml", allRules(0)) }, "x/limits.yaml").run(fileWays)
	})
	t.Run("a ConfigMap", func(t *testing.T) {
		t.Parallel()
		newLoad(t, core.Options{}, quick, func(l *traffic) {
			l.writeConfigMap(0)
			l.link("..0", "x/..data")
			l.link("..data/a.yaml", "x/a.yaml")
			l.link("..data/b.yaml", "x/b.yaml")
		}, "x").run(configMapWays)
	})
	t.Run("without events", func(t *testing.T) {
		t.Parallel()
		polling := filewatch.Config{Quiet: 10 * time.Millisecond, Poll: 5 * time.Millisecond}
		l := newLoad(t, core.Options{}, polling, func(l *traffic) {
			l.write("elsewhere/limits.yaml", allRules(0))
			l.must(os.Mkdir(l.path("x"), 0o700))
			l.must(os.Link(l.path("elsewhere/limits.yaml"), l.path("x/limits.yaml")))
		}, "x/limits.yaml")
		l.run([]way{{"through another link", unprepared, func(l *traffic, v int64) { l.write("elsewhere/limits.yaml", allRules(v)) }}})
	})
}

// Files that Reload has used for a moment are left behind when they are as they were before.
func TestReloadBesideWatch(t *testing.T) {
	path := write(t, "limits.yaml", oneRule("a"))
	set := follow(t, newLimiter(t), filewatch.Config{Quiet: 20 * time.Millisecond, Poll: time.Millisecond}, path)
	before := set.Version()
	if err := reload(t, set, oneRule("b")); err != nil || set.Version() == before {
		t.Fatalf("%v, version %s", err, set.Version())
	}
	if err := os.WriteFile(path, []byte(oneRule("a")), 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "the first rules", func() bool { return set.Version() == before })
	set.Close()
	set.Close()
	if err := reload(t, set, oneRule("c")); err != nil || set.Version() == before {
		t.Errorf("after Close: %v, version %s", err, set.Version())
	}
}

// Files that have changed since the watcher's look may be half written, and are left for its next one.
func TestFilesThatChangedSinceTheLook(t *testing.T) {
	path := write(t, "limits.yaml", oneRule("a"))
	set, err := load(t, path)
	if err != nil {
		t.Fatal(err)
	}
	before, seen := set.Version(), readNow(set.paths).digest()
	if err := os.WriteFile(path, []byte(oneRule("b")), 0o600); err != nil {
		t.Fatal(err)
	}
	set.tried = ""
	if set.takeUp(seen); set.Version() != before {
		t.Errorf("version %s was used, which the watcher has not seen", set.Version())
	}
	if set.takeUp(readNow(set.paths).digest()); set.Version() == before {
		t.Error("the files that the watcher has seen were not used")
	}
}

// caller is the handler of a log that calls the Set which a line is about, as a handler that stops the
// service may.
type caller struct {
	slog.Handler
	limiter *core.Limiter
	set     atomic.Pointer[Set]
	called  chan struct{} // receives after each line
}

func (c *caller) Enabled(context.Context, slog.Level) bool { return true }

func (c *caller) Handle(context.Context, slog.Record) error {
	if set := c.set.Load(); set != nil {
		set.MustGuard("api")
		set.MustCheck("api")
		_ = set.Reload()
		_, _, _ = set.Version(), set.Names(), c.limiter.Stats()
		set.Close()
		c.called <- struct{}{}
	}
	return nil
}

// The handler of a log may call the Set, even Close: no lock is held, and nothing waits for it.
func TestTheLogMayCallTheSet(t *testing.T) {
	client := redistest.Start(t).Client(t)
	document := newDocument(t, client)
	type way struct {
		open   func(l *core.Limiter, file string) (*Set, error)
		change func(t *testing.T, set *Set, file, text string)
	}
	rewrite := func(t *testing.T, _ *Set, file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	for name, by := range map[string]way{
		"Reload": {
			func(l *core.Limiter, file string) (*Set, error) { return Load(l, registered, file) },
			func(t *testing.T, set *Set, file, text string) { rewrite(t, set, file, text); go set.Reload() },
		},
		"Watch": {
			func(l *core.Limiter, file string) (*Set, error) { return watch(l, registered, []string{file}, quick) },
			rewrite,
		},
		"Follow": {
			func(l *core.Limiter, file string) (*Set, error) {
				return Follow(l, registered, document, Files(file))
			},
			func(t *testing.T, _ *Set, _, text string) {
				if text == "" {
					client.Set(background, "accesslimit:{%rules}:rd1", "garbage", 0)
				} else {
					publish(t, document, text, Version{})
				}
			},
		},
	} {
		for kind, text := range map[string]string{"good": perHour(7), "wrong": ""} {
			t.Run(name+" "+kind, func(t *testing.T) {
				client.FlushAll(background)
				c := &caller{Handler: slog.DiscardHandler, called: make(chan struct{}, 10)}
				var err error
				if c.limiter, err = core.New(core.Options{Logger: slog.New(c)}); err != nil {
					t.Fatal(err)
				}
				bounded.Cleanup(t, c.limiter.Close)
				file := write(t, "limits.yaml", perHour(5))
				set, err := by.open(c.limiter, file)
				if err != nil {
					t.Fatal(err)
				}
				guard := set.MustGuard("api")
				c.set.Store(set)
				by.change(t, set, file, text)
				await(t, "the log has not returned", func() bool { return len(c.called) > 0 })
				set.Close()
				if len(guard.Rules()) != 1 {
					t.Error("the guard has lost its rule")
				}
			})
		}
	}
}
