package core_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// cli is redis-cli on a server, with the scripts put together as the page says.
type cli struct {
	t       *testing.T
	addr    string
	page    string
	limiter *core.Limiter
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	page, err := os.ReadFile("REDIS.md")
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	return &cli{t, server.Addr(), string(page), newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})}
}

// row is the cells of the page's line that begins with these.
func (c *cli) row(cells ...string) []string {
	c.t.Helper()
	begin := "| " + strings.Join(cells, " | ") + " |"
	for line := range strings.Lines(c.page) {
		if strings.HasPrefix(line, begin) {
			return strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		}
	}
	c.t.Fatalf("the page has no line %q", begin)
	return nil
}

// script writes the script of these files, and returns where.
func (c *cli) script(files string) (path string) {
	c.t.Helper()
	text := "local algorithms = {}\n"
	for _, file := range strings.Split(files, ", ") {
		part, err := os.ReadFile(filepath.Join("internal", "algorithm", file))
		if err != nil {
			c.t.Fatal(err)
		}
		text += string(part)
	}
	path = filepath.Join(c.t.TempDir(), "script.lua")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// eval runs a script and returns the lines of its reply.
func (c *cli) eval(files string, keys, argv []string) []string {
	c.t.Helper()
	return c.run(append(append(append([]string{"--eval", c.script(files)}, keys...), ","), argv...)...)
}

func (c *cli) run(args ...string) []string {
	c.t.Helper()
	return c.input("", args...)
}

// input runs redis-cli with something to read.
func (c *cli) input(text string, args ...string) []string {
	c.t.Helper()
	host, port, _ := strings.Cut(c.addr, ":")
	command := exec.Command("redis-cli", append([]string{"-h", host, "-p", port}, args...)...)
	command.Stdin = strings.NewReader(text)
	out, err := command.CombinedOutput()
	if err != nil {
		c.t.Fatalf("redis-cli %q: %v\n%s", args, err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// numbers are the lines of a reply as integers.
func (c *cli) numbers(lines []string) []int64 {
	c.t.Helper()
	numbers := make([]int64, len(lines))
	for i, line := range lines {
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			c.t.Fatalf("the script replied %q", lines)
		}
		numbers[i] = n
	}
	return numbers
}

// foreignLimit is a limit as somebody who only has the page would call it.
type foreignLimit struct {
	limit  core.Limit
	row    string            // its line of the table
	window string            // as it stands in the key
	values map[string]string // of the arguments
}

func foreignLimits() map[string]foreignLimit {
	berlin, _ := time.LoadLocation("Europe/Berlin")
	year, month, day := time.Now().In(berlin).Date()
	midnight := func(after int) string {
		return fmt.Sprint(time.Date(year, month, day+after, 0, 0, 0, 0, berlin).UnixMicro())
	}
	hour := map[string]string{"max": "5", "window": "3600000000", "note": "from afar", "holder": "afar-1", "0": "0"}
	log := core.Limit{Max: 5, Window: time.Hour, Algorithm: core.SlidingLog}
	fixed := core.Limit{Max: 5, Window: time.Hour, Algorithm: core.FixedWindow}
	calendar := core.Limit{Max: 5, Window: time.Hour, Algorithm: core.CalendarWindow}
	slots := core.Limit{Max: 5, Window: time.Hour, Algorithm: core.Concurrency}
	return map[string]foreignLimit{
		"sliding window": {core.PerHour(5), "SlidingWindow", "3600000000", hour},
		"sliding log":    {log, "SlidingLog", "3600000000", hour},
		"fixed window":   {fixed, "FixedWindow", "3600000000", hour},
		"calendar":       {calendar, "CalendarWindow, from the epoch on", "3600000000", hour},
		"calendar day": {core.PerCalendarDay(5, "Europe/Berlin"), "CalendarWindow, of a zone", "dEurope/Berlin", map[string]string{
			"max": "5", "start": midnight(0), "end": midnight(1), "next": midnight(2),
		}},
		// 5 an hour: ticks of a millisecond, gcd(5, 3600000) = 5
		"bucket":      {core.PerHour(5).Bucket(5), "TokenBucket", "3600000000", map[string]string{"burst": "5", "permit": "720000", "refill": "1", "tick": "1000"}},
		"concurrency": {slots, "Concurrency", "3600000000", hour},
	}
}

// call is the key, the file and what decide.lua takes for a counter.
func (c *cli) call(name string, f foreignLimit, cost int) (key, tag, file string, args []string) {
	c.t.Helper()
	row := c.row(f.row)
	tag, file = row[1], row[2]
	for _, arg := range strings.Split(row[4], ", ") {
		value, ok := f.values[arg]
		if !ok {
			c.t.Fatalf("no value for %q", arg)
		}
		args = append(args, value)
	}
	key = fmt.Sprintf("accesslimit:{user:alice}:%s:%s:%s", name, tag, f.window)
	return key, tag, file, append([]string{tag, fmt.Sprint(cost)}, args...)
}

// decide charges through redis-cli and checks what is left.
func (c *cli) decide(flag, name string, f foreignLimit, cost int, left int64) []int64 {
	c.t.Helper()
	key, _, file, args := c.call(name, f, cost)
	reply := c.numbers(c.eval(file+", decide.lua", []string{key}, append([]string{flag}, args...)))
	if len(reply) != 5 || reply[1] != 0 || reply[2] != left {
		c.t.Fatalf("%s: the script replied %v, want %d left", name, reply, left)
	}
	return reply
}
