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
	// timeout is the limiter's: longer than usual if a machine under load causes errors of the same class,
	// or errors of another one in place of them.
	timeout time.Duration
}

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

// storeFaults are those that cause errors of several classes, or need another server or client than
// those of the matrix.
var storeFaults = []storeFault{
	{
		fault: "LOADING", classes: []core.StoreErrorClass{core.StoreNotReady},
		args:    []string{"--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no"},
		timeout: shortOr(3*time.Second, timeout),
		inject:  load, end: loaded, forgets: true,
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
			t.Parallel()
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
	calls := s.under(32, 5*time.Millisecond, limit, func() { a.pass(s, operator) })
	_ = operator.Close()
	for _, class := range a.classes {
		told.wantOnce(t, class, a.tells)
	}
	s.rest()
	for _, class := range a.classes {
		told.wantAll(t, class, s.failures(class))
	}
	calls.wantPolicies(t)
	if !a.forgets {
		calls.wantChargedOnce(s, limit)
	}
}

// pass injects the fault until it is met, and ends it.
func (a storeFault) pass(s *service, operator *redis.Client) {
	probe := s.direct("probe", core.PerDay(10_000_000))
	decides := func() bool { return decided(probe(context.Background(), "probe")) }
	soon(s.t, "the healthy server decides", decides)
	a.inject(s, operator)
	soon(s.t, "the fault is met", func() bool {
		return slices.ContainsFunc(a.classes, func(class core.StoreErrorClass) bool { return s.failures(class) > 0 })
	})
	a.end(s, operator)
	soon(s.t, "the server decides again, and the breaker is closed", func() bool { return decides() && s.breaker() == "closed" })
}
