package faults_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// storeFault is a state of a server, which then answers with errors, or not in time.
type storeFault struct {
	fault string // the line of the table
	// classes are the classes of the errors that it may cause. At least one must occur.
	classes []core.StoreErrorClass
	tells   string // the change that the log advises; "" if it ends by itself
	// args are for the server, and change is for the limiter's client.
	args   []string
	change func(*redis.Options)
	// inject begins it, and end ends it. The operator has a client and rights of its own.
	inject, end func(s *service, operator *redis.Client)
	// forgets is set if the server loses its counts.
	forgets bool
	// timeout is the limiter's: longer than usual if a machine under load causes errors of the same class.
	timeout time.Duration
	// rare is set if it may cause no error at all.
	rare bool
}

// rightsListed is in the advice about a missing right.
const rightsListed = "rights that core/REDIS.md lists"

// do runs commands as redis-cli takes them.
func do(commands ...[]any) func(*service, *redis.Client) {
	return func(s *service, operator *redis.Client) {
		s.t.Helper()
		for _, command := range commands {
			if err := operator.Do(context.Background(), command...).Err(); err != nil {
				s.t.Errorf("%v: %v", command, err)
			}
		}
	}
}

// operatorUser is the user who repairs the server. The limiter is the default user.
var operatorUser = []string{"--user", "operator", "on", "nopass", "~*", "&*", "+@all"}

var storeFaults = []storeFault{
	{
		fault:   "READONLY",
		classes: []core.StoreErrorClass{core.StoreNotReady}, tells: "connect to the master",
		inject: do([]any{"replicaof", "127.0.0.1", "1"}), end: do([]any{"replicaof", "no", "one"}),
	},
	{
		fault:   "MASTERDOWN",
		classes: []core.StoreErrorClass{core.StoreNotReady}, args: []string{"--replica-serve-stale-data", "no"},
		inject: do([]any{"replicaof", "127.0.0.1", "1"}), end: do([]any{"replicaof", "no", "one"}),
	},
	{
		fault: "LOADING", classes: []core.StoreErrorClass{core.StoreNotReady},
		args:   []string{"--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no"},
		inject: load, end: loaded, forgets: true,
	},
	{
		fault:   "BUSY: a script runs without end",
		classes: []core.StoreErrorClass{core.StoreNotReady}, args: []string{"--busy-reply-threshold", "50"},
		inject: endless, end: do([]any{"script", "kill"}),
	},
	{
		// go-redis ignores the error in reply to its first command on a connection, and goes on
		// writing to a closed connection. So no connection can be set up, and one set up earlier is
		// lost.
		fault:   "max number of clients reached",
		classes: []core.StoreErrorClass{core.StoreNotReady, core.StoreConnectionLost, core.StoreUnreachable},
		inject:  do([]any{"config", "set", "maxclients", "1"}, []any{"client", "kill", "user", "default"}),
		end:     do([]any{"config", "set", "maxclients", "1000"}),
	},
	{
		fault:   "a pool of one connection, which somebody else holds",
		classes: []core.StoreErrorClass{core.StoreNoConnection}, tells: "raise PoolSize", change: func(o *redis.Options) { o.PoolSize = 1 },
		timeout: shortOr(3*time.Second, timeout),
		inject:  hold, end: do([]any{"rpush", "held", "go on"}),
	},
	{
		fault: "OOM", classes: []core.StoreErrorClass{core.StoreRefused}, tells: "more maxmemory",
		inject: do([]any{"config", "set", "maxmemory", "1"}), end: do([]any{"config", "set", "maxmemory", "0"}),
	},
	{
		fault:   "NOAUTH",
		classes: []core.StoreErrorClass{core.StoreRefused}, tells: "set Username and Password",
		inject: do([]any{"acl", "setuser", "default", "resetpass", ">secret"}, []any{"client", "kill", "user", "default"}),
		end:    do([]any{"acl", "setuser", "default", "nopass"}),
	},
	{
		fault:   "WRONGPASS",
		classes: []core.StoreErrorClass{core.StoreRefused}, tells: "set Username and Password",
		// A user of its own. If the default user lost its password between HELLO and AUTH of one connection, Redis would refuse AUTH
		// with another error.
		args:   []string{"--user", "service", "on", ">old", "~*", "&*", "+@all"},
		change: func(o *redis.Options) { o.Username, o.Password = "service", "old" },
		inject: do([]any{"acl", "setuser", "service", "resetpass", ">new"}, []any{"client", "kill", "user", "service"}),
		end:    do([]any{"acl", "setuser", "service", "resetpass", ">old"}),
	},
	{
		fault:   "NOPERM for scripts",
		classes: []core.StoreErrorClass{core.StoreRefused}, tells: rightsListed,
		inject: do([]any{"acl", "setuser", "default", "-evalsha", "-eval"}), end: do([]any{"acl", "setuser", "default", "+@all"}),
	},
	{
		fault:   "NOPERM for the keys",
		classes: []core.StoreErrorClass{core.StoreRefused}, tells: rightsListed,
		inject: do([]any{"acl", "setuser", "default", "resetkeys", "~others:*"}), end: do([]any{"acl", "setuser", "default", "allkeys"}),
	},
	{
		fault:   "NOPERM for the scripts' commands",
		classes: []core.StoreErrorClass{core.StoreRefused}, tells: rightsListed,
		inject: do([]any{"acl", "setuser", "default", "-set", "-get", "-time"}), end: do([]any{"acl", "setuser", "default", "+@all"}),
	},
}

// load restarts the server with many keys to load, so slowly that it is not done before loaded.
func load(s *service, operator *redis.Client) {
	do([]any{"eval", "for i = 1, ARGV[1] do redis.call('SET', 'other' .. i, string.rep('x', 100)) end return 1", 0, 20_000}, []any{"save"})(s, operator)
	s.server.Restart()
}

// loaded makes the server load the keys at full speed, and returns when it has.
func loaded(s *service, operator *redis.Client) {
	do([]any{"config", "set", "key-load-delay", "0"})(s, operator)
	soon(s.t, "the server has read its file", func() bool { return operator.Get(context.Background(), "other1").Err() == nil })
}

// endless makes the server run a script that does not end, and returns when the server reports that
// it is busy.
func endless(s *service, operator *redis.Client) {
	another := s.server.Client(s.t, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries, o.Username = -1, -1, "operator" })
	go func() {
		another.Do(context.Background(), "eval", "while true do end", 0)
		_ = another.Close()
	}()
	soon(s.t, "the server says that it is busy", func() bool { return redis.HasErrorPrefix(operator.Ping(context.Background()).Err(), "BUSY") })
}

// hold blocks the limiter's client with a slow command, and returns when the server has received
// it.
func hold(s *service, operator *redis.Client) {
	go s.client.BLPop(context.Background(), patience, "held")
	soon(s.t, "the client waits", func() bool {
		list, err := operator.ClientList(context.Background()).Result()
		return err == nil && strings.Contains(list, "cmd=blpop")
	})
}

// While a server answers with errors, each rule's policy decides. When the server is well again it
// decides again, without a restart of the service.
func TestServerAnswersWithErrors(t *testing.T) {
	for _, a := range storeFaults {
		t.Run(a.fault, func(t *testing.T) {
			if !long() { // the long forms measure times
				t.Parallel()
			}
			a.test(t)
		})
	}
}

func (a storeFault) test(t *testing.T) {
	server, limit := redistest.Start(t, append(operatorUser, a.args...)...), core.PerDay(10_000_000)
	operator := server.Client(t, func(o *redis.Options) { o.Username, o.PoolSize = "operator", 1 })
	var told journal
	s := limited(t, server, core.Options{Timeout: a.timeout, Logger: slog.New(slog.NewJSONHandler(&told, nil))}, func(o *redis.Options) {
		if a.change != nil {
			a.change(o)
		}
	})
	var recovery time.Duration
	calls := s.under(shortOr(32, 64), shortOr(10*time.Millisecond, 5*time.Millisecond), limit, func() { recovery = a.pass(s, operator) })
	_ = operator.Close()
	for _, class := range a.classes {
		told.wantOnce(t, class, a.tells)
	}
	s.rest()
	for _, class := range a.classes {
		told.wantAll(t, class, s.failures(class))
	}
	calls.wantPolicies(t)
	calls.wantInTime(s)
	if !a.forgets {
		calls.wantChargedOnce(s, limit)
	}
	if _, late := tail(s.bare); recovery > closeWithin+2*late {
		t.Errorf("decided again %v after the recovery, want within %v; a bare timer was %v late", recovery, closeWithin, late)
	}
	report(t, a.fault, "decided again %.2f s after the recovery", recovery.Seconds())
}

// pass injects the fault and ends it, and returns how long after the recovery it decided again.
func (a storeFault) pass(s *service, operator *redis.Client) (recovery time.Duration) {
	probe := s.direct("probe", core.PerDay(10_000_000))
	decides := func() bool { return decided(probe(context.Background(), "probe")) }
	soon(s.t, "the healthy server decides", decides)
	a.inject(s, operator)
	time.Sleep(shortOr(200*time.Millisecond, 3*time.Second))
	soon(s.t, "the illness has been met", func() bool {
		return slices.ContainsFunc(a.classes, func(class core.StoreErrorClass) bool { return s.failures(class) > 0 })
	})
	a.end(s, operator)
	recovered := time.Now()
	soon(s.t, "the server decides again", decides)
	recovery = time.Since(recovered)
	soon(s.t, "the breaker is closed", func() bool { return s.breaker() == "closed" })
	time.Sleep(50 * time.Millisecond)
	return recovery
}
