package core_test

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// cli runs redis-cli on a server, with scripts that are put together as the pages say.
type cli struct {
	t       *testing.T
	addr    string
	pages   string
	limiter *core.Limiter
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	states, err1 := os.ReadFile("REDIS.md")
	scripts, err2 := os.ReadFile("SCRIPTS.md")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	return &cli{t, server.Addr(), string(states) + string(scripts), newLimiter(t, core.Options{Redis: server.Client(t), Timeout: patient})}
}

// row returns the cells of the pages' table row that begins with these cells.
func (c *cli) row(cells ...string) []string {
	c.t.Helper()
	begin := "| " + strings.Join(cells, " | ") + " |"
	for line := range strings.Lines(c.pages) {
		if strings.HasPrefix(line, begin) {
			return strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		}
	}
	c.t.Fatalf("the pages have no line %q", begin)
	return nil
}

// script writes a script that consists of these files, and returns its path.
func (c *cli) script(files string) (path string) {
	c.t.Helper()
	text := "local algorithms = {}\n"
	for _, name := range strings.Split(files, ", ") {
		text += c.file(name)
	}
	path = filepath.Join(c.t.TempDir(), "script.lua")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// file returns the text of a script's file.
func (c *cli) file(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join("internal", "algorithm", name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
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

// input runs redis-cli with this text as its input.
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

// numbers returns the lines of a reply as integers.
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

// foreignLimit is a limit in the terms of the pages, for somebody who has nothing else.
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

// call returns the key, the file and the values that decide.lua takes for a counter.
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

// These tests check the pages for other languages: their tables say how to call the scripts, and
// redis-cli calls them so.

// The library counts the charges and refunds that redis-cli makes by the pages, and the other way
// round.
func TestOtherLanguagesChargeTheSameCounters(t *testing.T) {
	c := newCLI(t)
	ctx := context.Background()
	for name, f := range foreignLimits() {
		cost := 2
		if f.limit.Algorithm == core.Concurrency {
			cost = 1
		}
		left := 5 - cost
		charged := c.decide("1", strings.ReplaceAll(name, " ", "-"), f, cost, int64(left))
		name = strings.ReplaceAll(name, " ", "-")
		wantLeft(t, c.limiter, name, "user:alice", f.limit, left)

		if f.limit.Algorithm == core.Concurrency {
			if _, d, err := holdBy(c.limiter, ctx, name, "user:alice", f.limit); err != nil || !d.Allowed {
				t.Fatalf("%s: %+v, %v", name, d, err)
			}
		} else if d, err := c.limiter.MustCounter(name, f.limit).Allow(ctx, "user:alice"); err != nil || !d.Allowed {
			t.Fatalf("%s: %+v, %v", name, d, err)
		}
		c.decide("0", name, f, 1, int64(left-1))

		key, _, _, args := c.call(name, f, cost)
		giveBack := append([]string{args[0], args[1], fmt.Sprint(charged[0]), fmt.Sprint(charged[4]), "0"}, args[2:]...)
		if changed := c.numbers(c.eval(c.row(f.row)[3]+", give_back.lua", []string{key}, giveBack)); changed[0] != 1 {
			t.Errorf("%s: %d counters changed", name, changed[0])
		}
		if f.limit.Algorithm != core.TokenBucket { // some of which came back by itself meanwhile
			wantLeft(t, c.limiter, name, "user:alice", f.limit, 4)
		}
	}
}

// Several counters, one of them in DryRun, are decided in one call.
func TestOtherLanguagesDecideTogether(t *testing.T) {
	c := newCLI(t)
	of := foreignLimits()
	window, bucket := of["sliding window"], of["bucket"]
	first, _, windowFile, windowArgs := c.call("first", window, 5)
	second, _, bucketFile, bucketArgs := c.call("second", bucket, 5)
	files := windowFile + ", " + bucketFile + ", decide.lua"
	argv := append(append([]string{"1"}, windowArgs...), bucketArgs...)
	c.eval(files, []string{first, second}, argv)
	wantLeft(t, c.limiter, "first", "user:alice", window.limit, 0)
	wantLeft(t, c.limiter, "second", "user:alice", bucket.limit, 0)
	c.run("DEL", first)
	c.eval(files, []string{first, second}, argv)
	wantLeft(t, c.limiter, "first", "user:alice", window.limit, 5)
	argv[7] = "~" + argv[7]
	c.eval(files, []string{first, second}, argv)
	wantLeft(t, c.limiter, "first", "user:alice", window.limit, 0)
}

// The other scripts do what the pages say.
func TestOtherLanguagesReserveRenewReadAndBan(t *testing.T) {
	c := newCLI(t)
	ctx := context.Background()
	of := foreignLimits()

	bucket := of["bucket"]
	key, _, _, args := c.call("turn", bucket, 50)
	reserved := c.numbers(c.eval(c.row("reserve")[1], []string{key}, append([]string{"0", "50"}, args[2:]...)))
	if d, err := c.limiter.MustPacer("turn", bucket.limit).Reserve(ctx, "user:alice", 1); err != nil || d.Wait < 9*time.Hour || len(reserved) != 6 || reserved[1] != 0 {
		t.Errorf("reserved %v; the next turn is %+v, %v", reserved, d, err)
	}

	slots := of["concurrency"]
	key, _, _, _ = c.call("flight", slots, 1)
	c.eval(c.row("renew")[1], []string{key}, []string{"afar-1", "3600000000"})
	wantLeft(t, c.limiter, "flight", "user:alice", slots.limit, 4)

	log := of["sliding log"]
	if _, err := c.limiter.MustLog("log", log.limit).AllowN(ctx, "user:alice", 2, "from Go"); err != nil {
		t.Fatal(err)
	}
	c.decide("1", "log", log, 1, 2)
	key, _, _, _ = c.call("log", log, 1)
	records := c.eval(c.row("records")[1], []string{key}, []string{"3600000000"})
	if len(records) != 6 || records[1] != "1" || records[2] != "from afar" || records[4] != "2" || records[5] != "from Go" {
		t.Errorf("records are %q", records)
	}

	guard := newGuard(t, c.limiter, core.Rule{Name: "banned", Seconds: 60, Ban: core.Ban{ByHand: true}})
	wantStatus(t, guard, newView("GET", "/"), 200)
	tag := c.row("ban")[1]
	c.eval(c.row("impose ban")[1], []string{"accesslimit:{ip:192.0.2.1}:banned:" + tag + ":0"}, []string{"60000000"})
	wantStatus(t, guard, newView("GET", "/"), 429)
}

// The pages' scripts are those that this library sends, so a server keeps each of them once.
func TestOtherLanguagesShareTheScripts(t *testing.T) {
	c := newCLI(t)
	for name, f := range foreignLimits() {
		if f.limit.Algorithm == core.Concurrency {
			continue // has no direct call
		}
		if _, err := peek(c.limiter, context.Background(), name, "user:alice", f.limit); err != nil {
			t.Fatal(err)
		}
		_, _, file, _ := c.call(name, f, 1)
		text, err := os.ReadFile(c.script(file + ", decide.lua"))
		if err != nil {
			t.Fatal(err)
		}
		if known := c.run("SCRIPT", "EXISTS", fmt.Sprintf("%x", sha1.Sum(text))); known[0] != "1" {
			t.Errorf("%s: the server does not know the script", name)
		}
	}
}

// The fast scripts and decide_equal.lua take and return what the pages say, on the same states.
func TestOtherLanguagesDecideFaster(t *testing.T) {
	c := newCLI(t)
	for _, of := range []struct {
		file  string
		limit core.Limit
		head  []int64
	}{
		{"token_bucket_fast.lua", core.PerMinute(5).Bucket(5), []int64{48_000_000, 24_000_000, 12_000_000, 1, 1, 60_000_000}},
		{"sliding_window_fast.lua", core.PerMinute(5), []int64{4, 2, 5, 60_000_000, 0, 0}},
		{"fixed_window_fast.lua", core.Limit{Max: 5, Window: time.Minute, Algorithm: core.FixedWindow}, []int64{4, 2, 5, 60_000_000, 0, 0}},
	} {
		t.Run(of.file, func(t *testing.T) {
			tag := map[core.Algorithm]string{core.TokenBucket: "tb3", core.SlidingWindow: "sw1", core.FixedWindow: "fw1"}[of.limit.Algorithm]
			text := "local fast = {}\n" + c.file(of.file) + "local decide = fast." + tag + "\n" + c.file("decide_fast.lua")
			sha := c.input(text, "-x", "SCRIPT", "LOAD")[0]
			key := fmt.Sprintf("accesslimit:{user:alice}:fast:%s:%d", tag, of.limit.Window.Microseconds())
			var arg strings.Builder
			for _, n := range of.head {
				for i := range 7 {
					fmt.Fprintf(&arg, `\x%02x`, byte(n>>(8*i)))
				}
			}
			// Two calls of two permits pass, of five permits. Then no such call passes, and one
			// permit is left.
			for range 2 {
				c.input(fmt.Sprintf(`EVALSHA %s 1 %s "%s"`, sha, key, arg.String()))
			}
			d, err := peek(c.limiter, context.Background(), "fast", "user:alice", of.limit)
			if err != nil || d.Remaining != 1 || !strings.Contains(c.pages, of.file) {
				t.Errorf("%+v, %v, want one permit left", d, err)
			}
		})
	}
}

// The states are as REDIS.md says, after a new subject has taken two permits.
func TestOtherLanguagesReadTheStates(t *testing.T) {
	c := newCLI(t)
	now := time.Now().UnixMicro()
	want := map[string][]string{
		"sw1": {"", "2", "2"}, "fw1": {"now", "2"}, "cw1": {"", "2"}, "tb3": {"", "1440000", "720000", "1", "5", "", "now"},
	}
	for name, f := range foreignLimits() {
		key, tag, _, _ := c.call(name, f, 2)
		if want[tag] == nil {
			continue // lists and sets are read by the other tests
		}
		if _, err := c.limiter.MustCounter(name, f.limit).AllowN(context.Background(), "user:alice", 2); err != nil {
			t.Fatal(err)
		}
		format := "<" + strings.Join(regexp.MustCompile("I[0-9]").FindAllString(strings.Split(c.row(tag)[2], ";")[0], -1), "")
		read := "return {struct.unpack(ARGV[1], redis.call('GET', KEYS[1]))}"
		key = strings.ReplaceAll(key, " ", "%20")
		state := c.numbers(c.run("EVAL", read, "1", key, format))
		if end := state[len(state)-1]; fmt.Sprint(end-1) != c.run("STRLEN", key)[0] {
			t.Errorf("%s: the state ends before byte %d", name, end)
		}
		for i, w := range want[tag] {
			if w == "now" && (state[i] < now || state[i] > time.Now().UnixMicro()) || w != "now" && w != "" && fmt.Sprint(state[i]) != w {
				t.Errorf("%s: the state is %v, want %v", name, state, want[tag])
			}
		}
	}
}
