package operatorlog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/accesslimit/accesslimit/internal/logtest"
)

// newLog returns a log, and a function that counts its lines that contain all of some words.
func newLog() (log *operatorlog.Log, lines func(words ...string) int) {
	var text logtest.Log
	return operatorlog.New(text.Logger()), text.Count
}

// A message is written at once, and a minute later once for all times since then. Messages that
// wait when the log is closed are written then.
func TestOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := newLog()
		fail := func(n int) {
			for range n {
				log.StoreFailed("rule", "fail_open", failure.NoAnswer(failure.Timeout, time.Second, errors.New("late")))
			}
		}
		want := func(when string, total, calls int) {
			t.Helper()
			synctest.Wait()
			if n, last := lines("class=timeout"), lines(fmt.Sprintf("calls=%d\n", calls)); n != total || last == 0 {
				t.Errorf("%s: %d lines, %d with %d calls; want %d", when, n, last, calls, total)
			}
		}
		fail(1)
		want("at first", 1, 1)
		fail(5)
		time.Sleep(time.Minute - 1)
		want("within the minute", 1, 1)
		time.Sleep(time.Nanosecond)
		want("after the minute", 2, 5)
		time.Sleep(time.Hour)
		want("after an hour without failures", 2, 5)
		fail(1)
		fail(7)
		log.Close()
		want("when closed", 4, 7)
		fail(9)
		time.Sleep(time.Hour)
		want("after it was closed", 4, 7)
	})
}

// A message about one rule does not hide one about another, up to a bound.
func TestEachRuleIsLogged(t *testing.T) {
	log, lines := newLog()
	for i := range 300 {
		for range 2 {
			log.NegativeCost(fmt.Sprint("rule", i), -1)
		}
	}
	log.NegativeCost("rule0", -1)
	if n := lines("rule=rule0 "); n != 1 {
		t.Errorf("%d lines about the first rule", n)
	}
	if n := lines("rule=rule1 "); n != 1 {
		t.Errorf("%d lines about the second rule", n)
	}
	if n := lines("cost is negative"); n != 101 {
		t.Errorf("%d lines for 300 wrong rules", n)
	}
}

// A rule that has caused no message for a minute gives up its place, so that rules which come and go
// do not fill the table.
func TestQuietRulesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := newLog()
		defer log.Close()
		for i := range 300 {
			log.NegativeCost(fmt.Sprint("rule", i), -1)
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		log.NegativeCost("new", -1)
		log.NegativeCost("newer", -1)
		if n := lines("rule=new"); n != 2 {
			t.Errorf("%d lines about 2 rules", n)
		}
	})
}

// Messages about the setup are written once for each subject, up to a bound.
func TestSetupIsLoggedOnce(t *testing.T) {
	log, lines := newLog()
	for i := range 300 {
		for range 2 {
			log.RouteCountedTwice(fmt.Sprint("/route", i))
			log.NoAddress("rule", false, "X-Forwarded-For")
		}
	}
	if n := lines("share a counter"); n != 100 {
		t.Errorf("%d lines for 300 routes", n)
	}
	if n := lines("ip:unknown"); n != 1 {
		t.Errorf("%d lines about calls without an address", n)
	}
}

// A message that is written later has the texts of its time, even if a framework overwrote them.
func TestTextsAreCopied(t *testing.T) {
	log, lines := newLog()
	lent := []byte("lent")
	for range 2 {
		log.StoreFailed(unsafe.String(&lent[0], len(lent)), "none", errors.New(unsafe.String(&lent[0], len(lent))))
	}
	copy(lent, "else")
	log.Close()
	if lines("latest_rule=lent", "error=lent") != 2 || lines("else") != 0 {
		t.Errorf("%d lines with the texts of their time, %d with later ones", lines("lent"), lines("else"))
	}
}

// A line about a missing right names it, unless the user may not use our keys.
func TestMissingRights(t *testing.T) {
	for text, change := range map[string]string{
		"ERR The user executing the script can't run this command or subcommand":          "the right +xadd",
		"NOPERM this user has no permissions to access one of the keys used as arguments": "all keys that begin with Options.Prefix",
	} {
		log, lines := newLog()
		log.AuditOff(errors.New(text))
		if lines("the audit stream is off", change) != 1 {
			t.Errorf("%q: the log does not advise about %q", text, change)
		}
	}
}

// Errors get the level and the advice that fit them, by their class and words.
func TestRemedies(t *testing.T) {
	for _, test := range []struct {
		class failure.Class
		text  string
		words []string
	}{
		{failure.Refused, "NOPERM this user has no permissions", []string{"level=ERROR", failure.RightsPage + " lists; ACL LOG"}},
		{failure.Refused, "NOPERM this user has no permissions to access one of the keys used as arguments", []string{"level=ERROR", "all keys that begin with Options.Prefix"}},
		{failure.Refused, "NOPERM No permissions to access a key", []string{"level=ERROR", "all keys that begin with Options.Prefix"}},
		{failure.Refused, "CROSSSLOT Keys in request don't hash to the same slot", []string{"level=ERROR", "let the proxy choose the server by"}},
		{failure.Refused, "MOVED 1 10.0.0.1:6379", []string{"level=ERROR", "redis.NewClusterClient"}},
		{failure.Refused, "ERR Unknown command called from script", []string{"level=ERROR", "rename-command"}},
		{failure.Refused, "ERR Error running script (call to f_f60d): @user_script:47: ERR syntax error", []string{"level=ERROR", "run a newer Redis, or Valkey"}},
		{failure.Refused, "ERR Error compiling script (new function): :16: Script attempted to access nonexistent global variable 'struct' stack traceback:", []string{"level=ERROR", "as miniredis does"}},
		{failure.Unreachable, "ERR max number of clients reached", []string{"level=WARN", "raise maxclients"}},
		{failure.Unreachable, "DENIED Redis is running in protected mode", []string{"level=ERROR", "protected mode"}},
		{failure.Unreachable, "dial tcp: connection refused", []string{"level=WARN", "start Redis"}},
		{failure.Unreachable, "x509: certificate signed by unknown authority", []string{"level=ERROR", "RootCAs"}},
		{failure.Refused, "Write commands not allowed after non deterministic commands", []string{"level=ERROR", "lua-replicate-commands"}},
		{failure.NotReady, "READONLY You can't write", []string{"level=WARN", "connect to the master"}},
		{failure.NotReady, "NOREPLICAS Not enough good replicas to write.", []string{"level=WARN", "min-replicas-to-write"}},
		{failure.Foreign, "a key of this limiter holds something else", []string{"level=ERROR"}},
		{failure.Timeout, "no answer within 100ms: OOM", []string{"level=WARN"}},
	} {
		log, lines := newLog()
		log.StoreFailed("rule", "fail_open", &failure.Error{Class: test.class, Err: errors.New(test.text)})
		if lines(append(test.words, "class="+string(test.class))...) != 1 {
			t.Errorf("%q of class %s is not logged with %q", test.text, test.class, test.words)
		}
		if advised := lines("change=") > 0; advised != (len(test.words) == 2) {
			t.Errorf("%q of class %s: advised %v", test.text, test.class, advised)
		}
	}
}

// Long errors are cut off, whichever message they are in.
func TestLongErrorsAreCutOff(t *testing.T) {
	log, lines := newLog()
	long := errors.New("OOM " + strings.Repeat("x", 1<<20))
	log.StoreFailed("rule", "fail_open", &failure.Error{Class: failure.Refused, Err: long})
	log.Unreachable("addr", long)
	log.OneKeyPerScript("addr", long)
	log.AuditOff(long)
	log.IdentifyFailed("rule", "was refused", long)
	if n := lines("OOM xxx", "(1048580 bytes)"); n != 5 {
		t.Errorf("%d lines say that their error was cut off, want 5", n)
	}
	if n := lines(strings.Repeat("x", 1100)); n != 0 {
		t.Errorf("%d lines are too long", n)
	}
}

// A panic is logged with its stack, once a minute, and a handler of the log that panics ends nothing.
func TestPanicked(t *testing.T) {
	log, lines := newLog()
	err := panics.Catch(func() error { panic("of a test") })
	log.Panicked(err)
	log.Panicked(err)
	if n := lines("level=ERROR", "a panic was caught", "panic: of a test", "TestPanicked"); n != 1 {
		t.Errorf("%d lines with the panic and its stack, want 1", n)
	}
	operatorlog.New(slog.New(panickingHandler{})).Panicked(err)
}

type panickingHandler struct{ slog.Handler }

func (panickingHandler) Enabled(context.Context, slog.Level) bool { panic("of the handler") }
