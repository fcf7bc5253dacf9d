package core_test

import (
	"context"
	"errors"
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
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// aclLines are the lines that failure.RightsPage tells operators to give to Redis, as words.
type aclLines struct {
	everybody, cluster, ring, database, optional, operators []string
	followers, publishers, readers                          []string // of a document with rules
}

func readACL(t *testing.T) (l aclLines) {
	t.Helper()
	page, err := os.ReadFile("../" + failure.RightsPage)
	if err != nil {
		t.Fatal(err)
	}
	// In the order of the page.
	in := []*[]string{&l.everybody, &l.cluster, &l.ring, &l.database, &l.optional, &l.operators, &l.followers, &l.publishers, &l.readers}
	for line := range strings.Lines(string(page)) {
		words := strings.Fields(line)
		if len(words) < 4 || words[0] != "ACL" || words[1] != "SETUSER" {
			continue
		}
		if len(in) == 0 {
			t.Fatalf("%s has one line ACL SETUSER too many: %s", failure.RightsPage, line)
		}
		*in[0], in = words, in[1:]
	}
	if len(in) > 0 {
		t.Fatalf("%s lacks %d lines ACL SETUSER", failure.RightsPage, len(in))
	}
	return l
}

// rights returns the commands that a line permits.
func rights(line []string) (commands []string) {
	for _, word := range line {
		if command, ok := strings.CutPrefix(word, "+"); ok {
			commands = append(commands, command)
		}
	}
	return commands
}

// The lines permit the commands that the scripts call, those that send the scripts, those that are
// sent by themselves, and nothing else.
func TestTheACLLineIsWhatTheScriptsCall(t *testing.T) {
	acl := readACL(t)
	deciding := calledBy(t, "internal/algorithm/*.lua", "eval", "evalsha", "del") // DEL by itself: Reset
	if got := rights(acl.everybody); !slices.Equal(got, deciding) || !slices.Contains(acl.everybody, "~accesslimit:*") {
		t.Errorf("%s permits %q, want %q for the keys of the default Prefix", failure.RightsPage, acl.everybody, deciding)
	}
	all := append(calledBy(t, "internal/audit/*.lua", "xrevrange"), calledBy(t, "internal/overrides/*.lua")...)
	operating := slices.DeleteFunc(all, func(command string) bool { return slices.Contains(deciding, command) })
	if got := rights(acl.operators); !slices.Equal(got, operating) {
		t.Errorf("%s permits operators %q, want %q", failure.RightsPage, got, operating)
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

// permit gives a server's user the rights of these lines, without one of them.
func permit(t *testing.T, server *redis.Client, less string, lines ...[]string) {
	t.Helper()
	ctx := context.Background()
	rest := func(word string) bool { return word != "+"+less }
	if err := server.Do(ctx, "acl", "deluser", lines[0][2]).Err(); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		var command []any
		for _, word := range line {
			if rest(word) {
				command = append(command, word)
			}
		}
		if err := server.Do(ctx, command...).Err(); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
}

// userOf returns the user that the line creates.
func userOf(line []string) (user, password string) {
	for _, word := range line {
		if secret, ok := strings.CutPrefix(word, ">"); ok {
			password = secret
		}
	}
	return line[2], password
}

// denied returns the commands that servers refused since the last call of denied, except the CLIENT
// SETINFO by which go-redis introduces itself.
func denied(t *testing.T, servers ...*redis.Client) (commands []string) {
	t.Helper()
	for _, server := range servers {
		log, err := server.ACLLog(background, 100).Result()
		if err = errors.Join(err, server.ACLLogReset(background).Err()); err != nil {
			t.Fatal(err)
		}
		for _, entry := range log {
			if !strings.HasPrefix(entry.Object, "client") && !slices.Contains(commands, entry.Object) {
				commands = append(commands, entry.Object)
			}
		}
	}
	return commands
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
	}{{[][]string{line}, "info xadd"}, {[][]string{line, acl.optional, acl.operators}, ""}} {
		permit(t, admin, "", test.lines...)
		for _, err := range useEverything(t, connect(), states, "all-but-"+test.refused) {
			t.Errorf("with the rights of %q: %v", test.lines, err)
		}
		renewsSlots(t, connect())
		refused := denied(t, admin)
		slices.Sort(refused)
		if got := strings.Join(refused, " "); got != test.refused {
			t.Errorf("with the rights of %q the server refused %q, want %q", test.lines, got, test.refused)
		}
	}
	for _, right := range rights(line) {
		permit(t, admin, right, line)
		errs := useEverything(t, connect(), states, "less-"+right)
		// Calls work without EVAL if the server knows their scripts, and without MGET, only slower.
		if right != "eval" && right != "mget" && len(errs) == 0 {
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

// Giving back an entry from the middle of a log takes LREM. If the user may not call it, nothing is
// given back: neither that entry nor what other counters were charged with it. The log says why.
func TestARefundWithoutLREMChangesNothing(t *testing.T) {
	server := redistest.Start(t)
	admin, line := server.Client(t), readACL(t).everybody
	user, password := userOf(line)
	permit(t, admin, "lrem", line)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Timeout: patient, Logger: log.Logger(), Redis: server.Client(t, func(o *redis.Options) {
		o.Username, o.Password = user, password
	})})
	entries := core.Limit{Max: 50, Window: time.Hour, Algorithm: core.SlidingLog}
	guard := newGuard(t, limiter, core.Rule{
		Name:  "n",
		Limit: core.PerHour(100),
		Also:  []core.Limit{entries},
		Count: func(status int) bool { return status == 200 },
	})
	call := func(handle func() int) { guard.Check(newView("GET", "/")).Run(handle) }
	ok := func() int { return 200 }
	call(ok)
	var before []string
	key := core.CounterKey("accesslimit", "ip:192.0.2.1", "n", entries)
	call(func() int {
		call(ok)
		before = admin.LRange(background, key, 0, -1).Val()
		return 401
	})
	wantLeft(t, limiter, "n", "ip:192.0.2.1", core.PerHour(100), 97)
	wantLeft(t, limiter, "n", "ip:192.0.2.1", entries, 47)
	if after := admin.LRange(background, key, 0, -1).Val(); !slices.Equal(after, before) {
		t.Errorf("the log was %q, and is %q", before, after)
	}
	if log.Count("could not be given back", "level=ERROR", "LREM", failure.RightsPage) != 1 {
		t.Error(log.String())
	}
}

// Operators' acts are written and read with exactly these rights. Without the right to write, the
// audit is off. The log says so once, and nothing else changes.
func TestTheACLLineForOperators(t *testing.T) {
	server := redistest.Start(t)
	admin, acl := server.Client(t), readACL(t)
	user, password := userOf(acl.everybody)
	for _, less := range append(rights(acl.operators), "") {
		permit(t, admin, less, acl.everybody, acl.operators)
		admin.Del(background, core.AuditKey)
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
			if entries, err := operate.New(limiter).Audit(background, "", 10); isRefused(err) != (less == "xrevrange") || err == nil && (len(entries) == 2) != (less == "") {
				t.Errorf("without %q: %+v, %v", less, entries, err)
			}
		}
		if less == "xrevrange" && (log.Count("level=WARN", "audit stream cannot be read", "+xrevrange", failure.RightsPage) != 1 || log.Count("level=ERROR") > 0 || limiter.Stats().StoreErrors != nil) {
			t.Errorf("%s, %+v", log.String(), limiter.Stats().StoreErrors)
		}
		if less == "xadd" && (log.Count("audit stream is off", "+xadd", failure.RightsPage) != 1 || log.Count("audit") != 1) {
			t.Error(log.String())
		}
		got := slices.DeleteFunc(denied(t, admin), func(command string) bool { return command == "info" })
		if less == "" && len(got) > 0 || less != "" && !slices.Equal(got, []string{less}) {
			t.Errorf("without %q the server refused %q", less, got)
		}
	}
}

// Overrides need the rights of every process. Without one of them, what needs it is refused, and
// nothing answers wrongly.
func TestOverridesWithoutARight(t *testing.T) {
	server := redistest.Start(t)
	admin, acl := server.Client(t), readACL(t)
	user, password := userOf(acl.everybody)
	limit, refused := core.PerMinute(10), make(map[string]bool)
	for _, less := range append(rights(acl.everybody), "") {
		permit(t, admin, less, acl.everybody)
		name, blocked := "n-"+less, operate.Override{Blocked: true}
		setting := overridable(t, newLimiter(t, core.Options{Timeout: patient, Redis: admin}), name, limit)
		limiter := newLimiter(t, core.Options{Timeout: patient, Redis: server.Client(t, func(o *redis.Options) { o.Username, o.Password = user, password })})
		overrides, counter := overridable(t, limiter, name, limit), limiter.MustCounter(name, limit).WithOverrides()
		want := func(what string, right bool, err error) {
			t.Helper()
			if err != nil && !isRefused(err) || err == nil && !right {
				t.Errorf("without %q: %s: %v", less, what, err)
			}
			refused[less] = refused[less] || err != nil
		}
		if err := setting.Set(background, "a", blocked); err != nil {
			t.Fatal(err)
		}
		d, err := counter.Allow(background, "a")
		want("a blocked call", d.Reason == core.Blocked, err)
		_, ok, err := overrides.Get(background, "a")
		want("Get", ok, err)
		page, _, err := overrides.List(background, "", 10)
		want("List", len(page) == 1, err)
		existed, err := overrides.Remove(background, "nobody")
		want("Remove of nothing", !existed, err)
		existed, err = overrides.Remove(background, "a")
		want("Remove", existed, err)
		err = overrides.Set(background, "b", blocked)
		want("Set", true, err)
		if _, ok, missing := setting.Get(background, "b"); missing != nil || ok != (err == nil) {
			t.Errorf("without %q: Set returned %v, and the override exists: %v, %v", less, err, ok, missing)
		}
	}
	for _, right := range []string{"", "del", "evalsha", "get", "set", "time", "zadd", "zcount", "zrange", "zscore"} {
		if refused[right] != (right != "") {
			t.Errorf("without %q something was refused: %v", right, refused[right])
		}
	}
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

// The same in a cluster, also while a slot moves.
func TestTheACLLineInACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	acl := readACL(t)
	line, more := acl.everybody, acl.cluster
	user, password := userOf(line)
	connect := func() redis.UniversalClient {
		return cluster.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = user, password })
	}
	var admins []*redis.Client
	for _, node := range cluster.Nodes() {
		admins = append(admins, node.Client(t))
	}
	allow := func(less string) {
		for _, admin := range admins {
			permit(t, admin, less, line, more)
		}
	}
	finder := cluster.Client(t)
	states := states{at: func(key string) *redis.Client {
		node, err := finder.MasterForKey(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		return node
	}}
	allow("")
	for _, err := range useEverything(t, connect(), states, "") {
		t.Errorf("with the rights of %q, %q: %v", line, more, err)
	}
	subject := cluster.Moving(t)
	ask := func() error {
		_, err := newLimiter(t, core.Options{Redis: connect(), Timeout: patient}).MustCounter("name", core.PerHour(100)).Allow(background, subject)
		return err
	}
	if err := ask(); err != nil {
		t.Errorf("while the slot moves: %v", err)
	}
	if got := denied(t, admins...); slices.ContainsFunc(got, func(command string) bool { return command != "info" && command != "xadd" }) {
		t.Errorf("with the rights of %q, %q the servers refused %q", line, more, got)
	}
	for _, right := range rights(more) {
		allow(right)
		if err := ask(); !isRefused(err) {
			t.Errorf("without %s: %v, want a refusal by Redis", right, err)
		}
		command, _, _ := strings.Cut(right, "|") // which is all that Redis 6.2 logs
		if got := denied(t, admins...); !slices.Contains(got, right) && !slices.Contains(got, command) {
			t.Errorf("without %s the servers refused %q", right, got)
		}
	}
}

// The same with a ring, whose client sends PING to each server and regards those that refuse it as
// dead.
func TestTheACLLineInARing(t *testing.T) {
	ring := redistest.StartRing(t, 2)
	acl := readACL(t)
	line, more := acl.everybody, acl.ring
	user, password := userOf(line)
	for _, less := range append(rights(more), "") {
		for _, node := range ring.Nodes() {
			permit(t, node.Client(t), less, line, more)
		}
		client := ring.Client(t, func(o *redis.RingOptions) {
			o.Username, o.Password, o.HeartbeatFrequency = user, password, 20*time.Millisecond
		})
		end := time.Now().Add(300 * time.Millisecond)
		if less != "" {
			end = time.Now().Add(patient)
		}
		for ; client.Len() == 2 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		}
		if alive := client.Len(); (alive == 2) != (less == "") {
			t.Errorf("without %q the client thinks that %d of 2 servers live", less, alive)
		}
	}
	if _, err := newLimiter(t, core.Options{Redis: ring.Client(t, func(o *redis.RingOptions) { o.Username, o.Password = user, password }), Timeout: patient}).MustCounter(
		"name", core.PerHour(5)).Allow(
		background, "subject"); err != nil {
		t.Error(err)
	}
}

// A document with rules is published and followed with exactly these rights. Without any one of
// them, the error names it, or the audit stream stays as it is.
func TestTheACLLinesForADocument(t *testing.T) {
	server := redistest.Start(t)
	admin, acl := server.Client(t), readACL(t)
	open := func(line []string) *rulefile.Document {
		user, password := userOf(line)
		document, err := rulefile.NewDocument(server.Client(t, func(o *redis.Options) { o.Username, o.Password = user, password }), "")
		if err != nil {
			t.Fatal(err)
		}
		return document
	}
	limiter := newLimiter(t, core.Options{Redis: admin, Timeout: patient})
	version, entries := rulefile.Version{}, 0
	for _, less := range append(rights(acl.publishers), "") {
		permit(t, admin, less, acl.publishers)
		if err := admin.ScriptFlush(background).Err(); err != nil {
			t.Fatal(err)
		}
		next, err := open(acl.publishers).Write(background, "version: 1\nrules: [{name: api, limit: 1/s}]\n", version)
		found, errAudit := operate.New(limiter).Audit(background, "", 100)
		if errAudit != nil {
			t.Fatal(errAudit)
		}
		switch {
		case err == nil && less == "" && len(found) == entries+1: // as it should be
		case err == nil && less == "xadd" && len(found) == entries: // it is not recorded
		case err == nil && strings.HasPrefix(less, "z"): // it may be recorded more than once
		case isRefused(err) && names(err, less): // it is not published
			continue
		default:
			t.Errorf("without %q: %v, and the audit has %d entries, after %d before", less, err, len(found), entries)
		}
		version, entries = next, len(found)
	}
	for _, less := range append(rights(acl.followers), "") {
		permit(t, admin, less, acl.everybody, acl.followers)
		read, err := open(acl.everybody).Read(background)
		if less == "" && (err != nil || read != version) || less != "" && (!isRefused(err) || !names(err, less)) {
			t.Errorf("without %q: %v, %v", less, read, err)
		}
	}
}

// A document with a prefix of its own can be read by processes that decide, and not written.
func TestTheACLLineForReaders(t *testing.T) {
	server := redistest.Start(t)
	admin, acl := server.Client(t), readACL(t)
	if strings.Contains(admin.Info(background, "server").Val(), "redis_version:6.") {
		return // which has no such patterns
	}
	permit(t, admin, "", acl.everybody, acl.readers)
	user, password := userOf(acl.everybody)
	open := func(change ...func(*redis.Options)) *rulefile.Document {
		document, err := rulefile.NewDocument(server.Client(t, change...), "rules")
		if err != nil {
			t.Fatal(err)
		}
		return document
	}
	published, err := open().Write(background, "version: 1\nrules: [{name: api, limit: 1/s}]\n", rulefile.Version{})
	if err != nil {
		t.Fatal(err)
	}
	document := open(func(o *redis.Options) { o.Username, o.Password = user, password })
	if read, err := document.Read(background); err != nil || read != published {
		t.Errorf("%v, %v", read, err)
	}
	if _, err := document.Write(background, published.Text, published); !isRefused(err) {
		t.Errorf("a process that only decides has written the document: %v", err)
	}
}

// A user can read the audit and nothing else, as GOVERNANCE.md says.
func TestTheRightsOfAnAuditor(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	if _, err := operate.New(newLimiter(t, core.Options{Redis: admin, Timeout: patient})).Ban(background, "n", "s", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := admin.Do(background, "acl", "setuser", "auditor", "on", ">p", "~"+core.AuditKey, "+xrevrange").Err(); err != nil {
		t.Fatal(err)
	}
	limiter := newLimiter(t, core.Options{Timeout: patient, Redis: server.Client(t, func(o *redis.Options) {
		o.Username, o.Password = "auditor", "p"
	})})
	if entries, err := operate.New(limiter).Audit(background, "", 10); err != nil || len(entries) != 1 {
		t.Errorf("the audit is %+v", entries)
	}
	if _, err := operate.New(limiter).Unban(background, "n", "s"); !isRefused(err) {
		t.Errorf("an auditor ends bans: %v", err)
	}
}

// names reports whether an error names a right.
func names(err error, right string) bool {
	return regexp.MustCompile(`\+` + right + `\b`).MatchString(err.Error())
}
