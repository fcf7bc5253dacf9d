package setups_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// The lines permit the commands that the scripts call, those that send the scripts, those that are
// sent by themselves, and nothing else.
func TestTheACLLineIsWhatTheScriptsCall(t *testing.T) {
	acl := readACL(t)
	// By themselves: DEL for Reset, HSCAN for marks.
	deciding := calledBy(t, "../../core/internal/marks/*.lua", calledBy(t, "../../core/internal/algorithm/*.lua", "eval", "evalsha", "del", "hscan")...)
	if got := rights(acl.everybody); !slices.Equal(got, deciding) || !slices.Contains(acl.everybody, "~accesslimit:*") {
		t.Errorf("%s permits %q, want %q for the keys of the default Prefix", rightsPage, acl.everybody, deciding)
	}
	all := calledBy(t, "../../core/internal/audit/*.lua", "xrevrange")
	operating := slices.DeleteFunc(all, func(command string) bool { return slices.Contains(deciding, command) })
	if got := rights(acl.operators); !slices.Equal(got, operating) {
		t.Errorf("%s permits operators %q, want %q", rightsPage, got, operating)
	}
}

// calledBy returns the commands that some scripts call, and more, in order.
func calledBy(t *testing.T, files string, more ...string) (commands []string) {
	t.Helper()
	scripts, err := filepath.Glob(files)
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`).FindAllStringSubmatch(string(text), -1)
		if calls := strings.Count(string(text), "redis.call") + strings.Count(string(text), "redis.pcall"); calls != len(named) {
			t.Errorf("%s: %d of %d calls name their command", script, len(named), calls)
		}
		for _, call := range named {
			more = append(more, strings.ToLower(call[1]))
		}
	}
	slices.Sort(more)
	return slices.Compact(more)
}

// With exactly the rights of the line, everything works on one server. Without any one of them,
// something fails.
func TestTheACLLineOnOneServer(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	acl := readACL(t)
	line := acl.everybody
	user, password := userOf(line)
	connect := func() redis.UniversalClient {
		return server.Client(t, func(o *redis.Options) { o.Username, o.Password = user, password })
	}
	states := states{at: func(string) *redis.Client { return admin }}
	for _, test := range []struct {
		lines   [][]string
		refused string
	}{{[][]string{line}, "info"}, {[][]string{line, acl.optional, acl.operators}, ""}} {
		permit(t, admin, "", test.lines...)
		for _, err := range useEverything(t, connect(), states, "all-but-"+test.refused) {
			t.Errorf("with the rights of %q: %v", test.lines, err)
		}
		renewsSlots(t, connect(), admin)
		refused := denied(t, admin)
		slices.Sort(refused)
		if got := strings.Join(refused, " "); got != test.refused {
			t.Errorf("with the rights of %q the server refused %q, want %q", test.lines, got, test.refused)
		}
	}
	for _, right := range rights(line) {
		permit(t, admin, right, line)
		errs := useEverything(t, connect(), states, "less-"+right)
		// Calls work without EVAL if the server knows their scripts. See TestMarksWithoutARight for XRANGE.
		if len(errs) == 0 && !slices.Contains([]string{"eval", "xrange"}, right) {
			t.Errorf("everything works without %s", right)
		}
		for _, err := range errs {
			if err != errUnseen && !isRefused(err) {
				t.Errorf("without %s: %v, want a refusal by Redis", right, err)
			}
		}
	}
	if err := admin.ScriptFlush(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	permit(t, admin, "eval", line)
	if errs := useEverything(t, connect(), states, "unknown"); len(errs) == 0 {
		t.Error("scripts that the server does not know run without eval")
	}
}

// Operators' acts are read with exactly these rights. Without them, the log says so once, and nothing
// else changes.
func TestTheACLLineForOperators(t *testing.T) {
	server := redistest.Start(t)
	admin, acl := server.Client(t), readACL(t)
	user, password := userOf(acl.everybody)
	for _, less := range append(rights(acl.operators), "") {
		permit(t, admin, less, acl.everybody, acl.operators)
		admin.Del(background, auditKey)
		denied(t, admin)
		var log logtest.Log
		limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: server.Client(t, func(o *redis.Options) {
			o.Username, o.Password = user, password
		})})
		for i := range 2 {
			if changed, err := operate.New(limiter).Ban(background, "n", fmt.Sprint(less, i), time.Hour); !changed || err != nil {
				t.Errorf("without %q: %v, %v", less, changed, err)
			}
		}
		for range 3 {
			if entries, err := operate.New(limiter).Audit(background, "", 10); isRefused(err) != (less == "xrevrange") || err == nil && len(entries) != 2 {
				t.Errorf("without %q: %+v, %v", less, entries, err)
			}
		}
		if less == "xrevrange" && (log.Count("level=WARN", "audit stream cannot be read", "+xrevrange", rightsPage) != 1 || log.Count("level=ERROR") > 0 || limiter.Stats().StoreErrors != nil) {
			t.Errorf("%s, %+v", log.String(), limiter.Stats().StoreErrors)
		}
		got := slices.DeleteFunc(denied(t, admin), func(command string) bool { return command == "info" })
		if less == "" && len(got) > 0 || less != "" && !slices.Equal(got, []string{less}) {
			t.Errorf("without %q the server refused %q", less, got)
		}
	}
}

// Without one of the rights for marks, what needs it is refused, and nothing answers wrongly. That they
// are not followed is in the log, once.
func TestMarksWithoutARight(t *testing.T) {
	server := redistest.Start(t)
	admin, acl := server.Client(t), readACL(t)
	user, password := userOf(acl.everybody)
	limit, refused := core.PerMinute(10), make(map[string]bool)
	for _, less := range append(rights(acl.everybody), "") {
		permit(t, admin, less, acl.everybody)
		name, blocked := "n-"+less, operate.Override{Blocked: true}
		setting := overrides(t, newLimiter(t, core.Options{Timeout: patient, Redis: admin}), name)
		if err := setting.Set(background, "a", blocked); err != nil {
			t.Fatal(err)
		}
		var log logtest.Log
		limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: server.Client(t, func(o *redis.Options) { o.Username, o.Password = user, password })})
		own := overrides(t, limiter, name)
		want := func(what string, right bool, err error) {
			t.Helper()
			if err != nil && !isRefused(err) || err == nil && !right {
				t.Errorf("without %q: %s: %v", less, what, err)
			}
			refused[less] = refused[less] || err != nil
		}
		_, ok, err := own.Get(background, "a")
		want("Get", ok, err)
		page, _, err := own.List(background, "", 10)
		want("List", len(page) == 1, err)
		if err := setting.Set(background, "c", blocked); err != nil {
			t.Fatal(err)
		}
		page, _, err = own.List(background, "", 10)
		want("List of what was set meanwhile", len(page) == 2, err)
		existed, err := own.Remove(background, "nobody")
		want("Remove of nothing", !existed, err)
		existed, err = own.Remove(background, "a")
		want("Remove", existed, err)
		err = own.Set(background, "b", blocked)
		want("Set", true, err)
		if d, err := limiter.MustCounter(name, limit).Allow(background, "b"); d.Reason != core.Blocked || err != nil {
			t.Errorf("without %q: %+v, %v; want what this process has set in force", less, d, err)
		}
		if less == "hget" || less == "hscan" || less == "xrange" {
			eventually(t, "the log says that marks are not read", func() bool { return log.Count("level=WARN", "are not read", rightsPage) == 1 })
		}
	}
	for _, right := range []string{"", "evalsha", "hdel", "hget", "hlen", "hmget", "hscan", "hset", "time", "xadd", "xrange", "zcard"} {
		if refused[right] != (right != "") {
			t.Errorf("without %q something was refused: %v", right, refused[right])
		}
	}
}

// overrides returns the overrides under a name.
func overrides(t *testing.T, limiter *core.Limiter, name string) operate.Overrides {
	t.Helper()
	all, err := operate.New(limiter).Overrides(name)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A client that counts in another database of the server must select it.
func TestTheACLLineForADatabase(t *testing.T) {
	server := redistest.Start(t)
	acl := readACL(t)
	user, password := userOf(acl.everybody)
	for _, less := range append(rights(acl.database), "") {
		permit(t, server.Client(t), less, acl.everybody, acl.database)
		client := server.Client(t, func(o *redis.Options) { o.Username, o.Password, o.DB = user, password, 1 })
		_, err := newLimiter(t, core.Options{Redis: client, Timeout: patient}).MustCounter("name", core.PerHour(5)).Allow(background, "subject")
		if less == "" && err != nil || less != "" && !isRefused(err) {
			t.Errorf("without %q: %v", less, err)
		}
	}
}
