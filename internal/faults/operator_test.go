package faults_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const operatorFault = "redis-server stands still, is slow (200 ms), refuses commands, is full, a replica, loading, restarted empty, or flushed, " +
	"while three processes call and an operator asks everything in turn, on the page too"

// operated are the storeFaults of a server that an operator asks about.
func operated(w *wire) (all []storeFault) {
	unanswered := []core.StoreErrorClass{core.StoreTimeout, core.StoreNoConnection, core.StoreUnreachable}
	all = []storeFault{{
		fault: "stopped", classes: unanswered,
		inject: func(s *service, _ *redis.Client) { s.server.Stop() }, end: func(s *service, _ *redis.Client) { s.server.Continue() },
	}, {
		fault: "flushed", forgets: true, inject: do([]any{"flushall"}), end: do(),
	}, known("READONLY")}
	if !long() {
		return append(all, without("evalsha", "eval"))
	}
	all = append(all, known("OOM"), storeFault{
		fault: "slow", classes: unanswered,
		inject: func(*service, *redis.Client) { w.inject(toxic{"latency", "downstream", `"latency": 200`}) },
		end:    func(*service, *redis.Client) { w.restore() },
	})
	for _, command := range []string{
		"del", "get", "mget", "set", "pexpireat", "time", "zadd", "zcount", "zrange", "zrangebyscore", "zrem", "zremrangebyscore", "zrevrange", "zscore",
		"xadd", "xrevrange",
	} {
		a := without(command)
		a.rare = true // a single server needs no MGET, for example
		all = append(all, a)
	}
	loading := known("LOADING")
	loading.classes = append(loading.classes, core.StoreConnectionLost, core.StoreUnreachable)
	return append(all, without("evalsha", "eval"), storeFault{
		fault: "killed", classes: append(unanswered, core.StoreConnectionLost), forgets: true,
		inject: func(s *service, _ *redis.Client) { s.server.Kill() }, end: func(s *service, _ *redis.Client) { s.server.Restart() },
	}, loading)
}

// known returns one of the storeFaults that callers meet.
func known(name string) storeFault {
	return storeFaults[slices.IndexFunc(storeFaults, func(a storeFault) bool { return a.fault == name })]
}

// without is the storeFault in which the limiter's user may not call some commands.
func without(commands ...string) storeFault {
	forbid, allow := []any{"acl", "setuser", "default"}, []any{"acl", "setuser", "default", "+@all"}
	for _, command := range commands {
		forbid = append(forbid, "-"+command)
	}
	return storeFault{
		fault: fmt.Sprint("without ", commands), classes: []core.StoreErrorClass{core.StoreRefused}, inject: do(forbid), end: do(allow),
	}
}

// While a server fails in any of these ways, an operator's questions are answered, or fail, in
// time, and so are calls. Acknowledged acts hold, and no answer is wrong.
func TestOperatorAsksAnIllServer(t *testing.T) {
	args := append(slices.Clone(operatorUser), "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no")
	server := redistest.Start(t, args...)
	w := newWire(t, server)
	v := newDrill(t, server, w)
	v.silent = true
	alone := v.pass(storeFault{fault: "nobody asks", inject: do(), end: do()})
	v.silent = false
	asked := v.pass(storeFault{fault: "well", inject: do(), end: do()})
	for _, a := range operated(w) {
		v.pass(a)
	}
	v.pass(storeFault{fault: "well again", inject: do(), end: do()})
	v.own.limiter.Close()
	v.fleet.end()
	report(t, operatorFault, "%s; %s; p99 of calls %.1f ms beside the questions, %.1f ms without; all recovered at most %.2f s after the recovery, no goroutine left",
		wantInTime(t, "answers", v.late, v.sum.Bare), wantInTime(t, "calls", v.waited(), v.sum.Bare), millis(asked), millis(alone), v.recovery.Seconds())
}
