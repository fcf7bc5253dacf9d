package filewatch

import (
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

// content is what files would hold, for tests without files.
type content struct {
	now     atomic.Value
	used    atomic.Value
	changes []string // the calls of Changed, with the seconds since the start
	start   time.Time
	ignored int // how many of the next calls of Changed use nothing
	failed  int
}

func (c *content) look() ([]string, string) { return nil, c.now.Load().(string) }

func (c *content) watch() *Watcher {
	c.start = time.Now()
	c.now.Store("a")
	c.used.Store("a")
	return Start(Config{
		Look:     c.look,
		Used:     func() string { return c.used.Load().(string) },
		Degraded: func(error) { c.failed++ },
		Changed: func(digest string) {
			c.changes = append(c.changes, digest+" after "+time.Since(c.start).String())
			if c.ignored--; c.ignored < 0 {
				c.used.Store(digest)
			}
		},
		newSource: func() (source, error) { return nil, syscall.EMFILE },
	})
}

// Without events, changes are noticed every ten seconds, and used when they are half a second old.
func TestPoll(t *testing.T) {
	for name, test := range map[string]struct {
		changes map[time.Duration]string
		ignored int
		want    []string
	}{
		"none":              {},
		"one":               {map[time.Duration]string{time.Second: "b"}, 0, []string{"b after 10.5s"}},
		"and back":          {map[time.Duration]string{1: "b", 10100 * time.Millisecond: "a"}, 0, nil},
		"back between":      {map[time.Duration]string{1: "b", 2: "a", 11 * time.Second: "b"}, 0, []string{"b after 20.5s"}},
		"twice":             {map[time.Duration]string{1: "b", 12 * time.Second: "a"}, 0, []string{"b after 10.5s", "a after 21s"}},
		"slowly":            {map[time.Duration]string{1: "b", 10250 * time.Millisecond: "c", 10750 * time.Millisecond: "d"}, 0, []string{"d after 11.5s"}},
		"while it was read": {map[time.Duration]string{1: "b"}, 2, []string{"b after 10.5s", "b after 11s", "b after 11.5s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &content{ignored: test.ignored}
				w := c.watch()
				for at, now := range test.changes {
					time.AfterFunc(at, func() { c.now.Store(now) })
				}
				time.Sleep(35 * time.Second)
				w.Close()
				w.Close()
				if !slices.Equal(c.changes, test.want) {
					t.Errorf("the changes are %q, want %q", c.changes, test.want)
				}
				if c.failed != 1 {
					t.Errorf("a failure that lasts was reported %d times", c.failed)
				}
			})
		})
	}
}

// The files may also be used without the Watcher: then it notices when they are as they were before.
func TestUsedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(content)
		w := c.watch()
		defer w.Close()
		time.Sleep(time.Second)
		c.now.Store("b")
		c.used.Store("b")
		time.Sleep(time.Second)
		c.now.Store("a")
		time.Sleep(time.Minute)
		w.Close()
		if want := []string{"a after 10.5s"}; !slices.Equal(c.changes, want) {
			t.Errorf("the changes are %q, want %q", c.changes, want)
		}
	})
}

// Close waits for a call of Changed, and there is none afterwards.
func TestCloseDuringALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, ended atomic.Int32
		w := Start(Config{
			Look: func() ([]string, string) { return nil, "changed before the start" },
			Used: func() string { return "a" },
			Changed: func(string) {
				calls.Add(1)
				time.Sleep(time.Minute)
				ended.Add(1)
			},
			newSource: func() (source, error) { return nil, errors.New("none") },
		})
		time.Sleep(time.Second)
		if calls.Load() != 1 || ended.Load() != 0 {
			t.Fatalf("%d calls, %d ended", calls.Load(), ended.Load())
		}
		w.Close()
		if ended.Load() != 1 {
			t.Error("Close did not wait")
		}
		time.Sleep(time.Hour)
		if calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}

func TestMain(m *testing.M) { leakcheck.Main(m) }
