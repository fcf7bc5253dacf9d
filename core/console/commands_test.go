package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const (
	mostCommands = 500 // for a page
	mostInFlight = 50  // for all pages together
)

// newHuge returns a limiter with a thousand rules, all of which have counted a subject, and some have
// banned it. Another limiter, which is closed, has made the calls, and this one does not read the lists
// of bans in the background, so that it sends nothing by itself.
func newHuge(t *testing.T, options core.Options) *core.Limiter {
	options.Logger = slog.New(slog.DiscardHandler)
	other, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	attachHuge(t, other, true)
	other.Close()
	l := newLimiter(t, options)
	(*limiter.Limiter[core.Rule])(l).Parts().Marks.Close()
	attachHuge(t, l, options.Redis == nil)
	return l
}

func attachHuge(t *testing.T, limiter *core.Limiter, called bool) {
	var guards []*core.Guard
	for i := range 1000 {
		guards = append(guards, attach(t, limiter, hugeRule(i)))
	}
	for i, guard := range guards {
		if !called {
			break
		}
		guard.Check(callOf("GET", "/"))
		if i < 20 {
			if _, err := operate.New(limiter).Ban(t.Context(), hugeRule(i).Name, "ip:198.51.100.7", time.Hour); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func hugeRule(i int) core.Rule {
	rule := core.Rule{Name: fmt.Sprintf("rule-%03d", i), Limit: core.PerHour(100), Ban: core.Ban{After: 3, For: time.Hour}}
	switch i % 50 {
	case 1:
		rule.Also = []core.Limit{core.PerMinute(50), core.PerSecond(10).Bucket(20)}
	case 2:
		rule.Limit = core.Limit{Max: 100, Window: time.Hour, Algorithm: core.SlidingLog}
	case 3:
		rule.Limit = core.InFlight(5).LostAfter(time.Hour)
	case 4:
		rule.Plan, rule.Plans = func(core.Request) (string, error) { return "", nil }, map[string]core.Limit{"pro": core.PerHour(1000)}
	}
	return rule
}

// hugePages are all pages, with what makes them large.
var hugePages = []string{
	"", "offenders?span=1h", "offenders?span=1h&rule=rule-001", "subject?subject=198.51.100.7", "subject?subject=198.51.100.7&after=rule-500",
	"explain?method=GET&path=/&route=/&address=198.51.100.7", "rules", "bans?rule=rule-001", "audit",
}

// No page takes Redis more than 500 commands, however many rules there are.
func TestCommandsOfAPage(t *testing.T) {
	server := redistest.Start(t)
	limiter := newHuge(t, core.Options{Redis: server.Client(t), Timeout: patient})
	viewer := as(t, "viewer", newPage(t, limiter, console.Options{}))
	for _, page := range hugePages {
		for _, path := range []string{page, "api/" + page} {
			if path == "api/" {
				path = "api/now"
			}
			before := commands(t, server)
			viewer.wantPage(path)
			if n := commands(t, server) - before; n > mostCommands {
				t.Errorf("%s takes %d commands, want at most %d", path, n, mostCommands)
			}
		}
	}
}

// commands returns how many commands a server has carried out, also in scripts, but for those of a
// connection and of this function.
func commands(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	stats, err := server.Client(t).Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(stats) {
		name, numbers, ok := strings.Cut(line, ":calls=")
		calls := 0
		if ok && name != "cmdstat_info" && name != "cmdstat_hello" && !strings.HasPrefix(name, "cmdstat_client") {
			_, _ = fmt.Sscanf(numbers, "%d", &calls)
		}
		n += calls
	}
	return n
}

// sentCommands counts the commands that a client writes into its connections.
type sentCommands struct{ n atomic.Int64 }

func (s *sentCommands) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &countedConn{conn, s}, err
}

type countedConn struct {
	net.Conn
	sent *sentCommands
}

var beginOfCommand = regexp.MustCompile(`\*\d+\r\n\$`)

func (c *countedConn) Write(b []byte) (int, error) {
	c.sent.n.Add(int64(len(beginOfCommand.FindAllIndex(b, -1))))
	return c.Conn.Write(b)
}

// connect makes a client open connections, so that nothing but commands is sent later.
func connect(t *testing.T, client *redis.Client, n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() { client.BLPop(t.Context(), time.Second, "none") })
	}
	all.Wait()
}

// settled returns how many commands have been sent, when no further ones follow.
func (s *sentCommands) settled(t *testing.T) int64 {
	t.Helper()
	limitertest.Eventually(t, "a command is sent", func() bool { return s.n.Load() > 0 })
	for same, last := 0, int64(0); same < 20; time.Sleep(50 * time.Millisecond) {
		if now := s.n.Load(); now == last {
			same++
		} else {
			same, last = 0, now
		}
	}
	return s.n.Load()
}

// All pages of a process together have at most 50 commands under way, however many are asked for.
func TestCommandsInFlight(t *testing.T) {
	server, sent := redistest.Start(t), new(sentCommands)
	client := server.Client(t, func(o *redis.Options) { o.PoolSize, o.Dialer = 200, sent.dial })
	limiter := newHuge(t, core.Options{Redis: client, Timeout: patient})
	page := newPage(t, limiter, console.Options{})
	as(t, "viewer", page).wantPage("")
	connect(t, client, 100)
	server.Stop() // so that what is sent stays under way
	sent.n.Store(0)
	var readers sync.WaitGroup
	for i := range 4 * len(hugePages) {
		readers.Go(func() { as(t, "viewer", page).get(hugePages[i%len(hugePages)]) })
	}
	if n := sent.settled(t); n > mostInFlight {
		t.Errorf("%d commands were under way together, want at most %d", n, mostInFlight)
	}
	server.Continue()
	readers.Wait()
}

// The page of a subject shows the rules in parts, without a gap, and in the order of their names.
func TestSubjectIsPaged(t *testing.T) {
	withBothEngines(t, func(t *testing.T, options core.Options) {
		viewer := as(t, "viewer", newPage(t, newHuge(t, options), console.Options{}))
		names, pages := viewer.follow("subject?subject=198.51.100.7", regexp.MustCompile(`<h3[^>]*>(rule-\d+)`))
		if len(names) != 1000 || pages < 2 {
			t.Fatalf("%d pages have %d rules", pages, len(names))
		}
		for i, name := range names {
			if want := fmt.Sprintf("rule-%03d", i); name != want {
				t.Fatalf("number %d is %s, want %s", i, name, want)
			}
		}
	})
}
