package rulefile

import (
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// caller is the handler of a log that calls the Set which a line is about, as one may that stops
// the service.
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
				t.Cleanup(c.limiter.Close)
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
