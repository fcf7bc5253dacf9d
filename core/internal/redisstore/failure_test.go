package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// dialTimeout returns net's error for a server that does not accept a connection in time. The error
// looks like the end of a context.
func dialTimeout() error {
	_, err := (&net.Dialer{Deadline: time.Unix(1, 0)}).Dial("tcp", "127.0.0.1:1")
	return err
}

// wrongReply returns the error of a reply that no script returns.
func wrongReply() error {
	_, err := algorithm.ReadTime([]string{"OK"})
	return err
}

// on returns the error of an operation on a connection.
func on(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }

// classes lists errors with their classes.
var classes = []struct {
	err  error
	want failure.Class
}{
	{on("read", os.ErrDeadlineExceeded), failure.Timeout},
	{errNoAnswer, failure.Timeout},
	{unanswered{context.Canceled}, failure.Timeout},
	{io.EOF, failure.Lost},
	{io.ErrUnexpectedEOF, failure.Lost},
	{on("read", syscall.ECONNRESET), failure.Lost},
	{on("write", syscall.EPIPE), failure.Lost},
	{on("dial", syscall.ECONNREFUSED), failure.Unreachable},
	{on("dial", os.ErrDeadlineExceeded), failure.Unreachable},
	{dialTimeout(), failure.Unreachable},
	{on("dial", &net.DNSError{Err: "no such host"}), failure.Unreachable},
	{redis.ErrClosed, failure.Unreachable},
	{errors.New("redis: all sentinels specified in configuration are unreachable"), failure.Unreachable},
	{errors.New("redis: all ring shards are down"), failure.Unreachable},
	{errors.New("redis: cluster has no nodes"), failure.Unreachable},
	{redis.ErrPoolTimeout, failure.NoConnection},
	{redis.ErrPoolExhausted, failure.NoConnection},
	{context.DeadlineExceeded, failure.NoConnection},
	{errNoTurn, failure.NoConnection},
	{errNoConnection, failure.NoConnection},
	{fmt.Errorf("all 10 connections of the client's pool were in use: %w", redis.ErrPoolTimeout), failure.NoConnection},
	{&unreached{cause: errNoSetUp, ended: true}, failure.Unreachable},
	{&unreached{cause: context.DeadlineExceeded}, failure.Unreachable},
	{&unreached{cause: io.EOF}, failure.Unreachable},
	{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, failure.Unreachable},
	{reply("LOADING Redis is loading the dataset in memory"), failure.NotReady},
	{reply("READONLY You can't write against a read only replica."), failure.NotReady},
	{reply("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), failure.NotReady},
	{reply("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), failure.NotReady},
	{reply("NOREPLICAS Not enough good replicas to write."), failure.NotReady},
	{reply("CLUSTERDOWN The cluster is down"), failure.NotReady},
	{reply("MOVED 1 127.0.0.1:1"), failure.NotReady},
	{reply("ERR max number of clients reached"), failure.NotReady},
	{reply("TRYAGAIN Multiple keys request during rehashing of slot"), failure.SlotMoving},
	{errBreakerOpen, failure.BreakerOpen},
	{reply("OOM command not allowed when used memory > 'maxmemory'."), failure.Refused},
	{reply("NOAUTH Authentication required."), failure.Refused},
	{reply("WRONGPASS invalid username-password pair or user is disabled."), failure.Refused},
	{reply("NOPERM this user has no permissions to run the 'evalsha' command"), failure.Refused},
	{reply("ERR ACL failure in script: User x has no permissions to run the 'get' command script: f, on @user_script:1."), failure.Refused},
	{reply("ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: f"), failure.Refused},
	{reply("ERR Unknown Redis command called from script script: f, on @user_script:1."), failure.Refused},
	{reply("ERR Error running script (call to f_b): @user_script:1: @user_script: 1: Unknown Redis command called from Lua script"), failure.Refused},
	{reply("ERR Unknown command called from script script: f, on @user_script:1."), failure.Refused},
	{reply("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."), failure.Refused},
	{reply("CROSSSLOT Keys in request don't hash to the same slot"), failure.Refused},
	{reply("ERR unknown command 'evalsha', with args beginning with: "), failure.Refused},
	{reply("ERR DB index is out of range"), failure.Refused},
	{reply("ERR invalid password"), failure.Refused},
	{reply("ERR Client sent AUTH, but no password is set"), failure.Refused},
	{reply("ERR wrong number of arguments for 'auth' command"), failure.Refused},
	{reply("ERR Protocol error: unauthenticated multibulk length"), failure.Refused},
	{reply("DENIED Redis is running in protected mode because protected mode is enabled"), failure.Refused},
	{reply("ERR This instance has cluster support disabled"), failure.Refused},
	{reply("ERR Error running script (call to f_f60d): @user_script:47: ERR syntax error"), failure.Refused},
	{reply("ERR Error running script (call to f_a7fe): @user_script:67: @user_script: 67: -MISCONF Errors writing to the AOF file: No space"), failure.Refused},
	{reply("ERR Error running script (call to f_a7fe): @user_script:67: @user_script: 67: -NOREPLICAS Not enough good replicas to write."), failure.NotReady},
	{reply("ERR Error running script (call to f_a7fe): @user_script:67: @user_script: 67: Write commands not allowed after non deterministic commands. Call redis.replicate_commands()"), failure.Refused},
	{reply("WRONGTYPE Operation against a key holding the wrong kind of value script: f"), failure.Foreign},
	{reply("NOTACOUNTER script: f"), failure.Foreign},
	{nameForeignKeys(reply("ERR user_script:1: data string too short script: f"), func() []string { return nil }), failure.Foreign},
	{reply("ERR something new"), failure.Unexpected},
	{wrongReply(), failure.Unexpected},
	{errors.New("redis: can't parse \"!\""), failure.Unexpected},
}

// The classes distinguish calls that may have been charged from those that were not.
func TestClassOf(t *testing.T) {
	for _, test := range classes {
		for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
			if _, own := test.err.(interface{ RedisError() }); !own && err != test.err && test.want == failure.Unreachable {
				continue // the client's own errors are recognized by their prefix, and never wrapped
			}
			if got := classOf(err); got != test.want {
				t.Errorf("%v: class %s, want %s", err, got, test.want)
			}
			if isSlotUnavailable(err) && test.want != failure.NotReady && test.want != failure.SlotMoving {
				t.Errorf("%v: is sent to another server, although it may have been charged", err)
			}
		}
		explained := toFailure(test.err, breakerTimeout)
		if errors.Is(explained, context.Canceled) || errors.Is(explained, context.DeadlineExceeded) || explained.Class != test.want {
			t.Errorf("%v: %v of class %s", test.err, explained, explained.Class)
		}
	}
}

// A version that cannot be parsed is not taken for an old one.
func TestIsOlder(t *testing.T) {
	for version, want := range map[string]bool{
		"6.0.20": true, "5.0.14": true, "2.8": true, "6.1.240": true, "6.2.0": false, "7.0.15": false, "10.1.2": false, "255.255.255": false,
		"": false, "unstable": false, "6": false,
	} {
		if got := isOlder(version); got != want {
			t.Errorf("%q is older: %t, want %t", version, got, want)
		}
	}
}

// stoppedNode answers no pipeline until it is released.
type stoppedNode struct{ asked, release chan struct{} }

func (n stoppedNode) process(ctx context.Context, _ command) error { return ctx.Err() }

func (n stoppedNode) noConnection() error { return errNoConnection }

func (n stoppedNode) processAll(context.Context, []redis.Cmder) error {
	n.asked <- struct{}{}
	<-n.release
	return errNoAnswer
}

// A call whose context ends while its pipeline is on its way may have been charged.
func TestAbandonedCallsMayHaveBeenCharged(t *testing.T) {
	n := stoppedNode{make(chan struct{}, 1), make(chan struct{})}
	defer close(n.release)
	s := newShard(n, 10, newCommon(time.Minute))
	limit := algorithm.Windowed(algorithm.SlidingWindow, 5, 1_000_000)
	ctx, end := context.WithCancel(context.Background())
	op := algorithm.NewOp(algorithm.AllOrNone, algorithm.Counter{Key: []byte("test:{k}:name:sw2:1000000"), Limit: &limit, Cost: 1})
	call := s.enqueue(ctx, request{op: *op, hash: 1})
	<-n.asked
	end()
	if err := call.await(); classOf(err) != failure.Timeout || !errors.Is(err, context.Canceled) {
		t.Errorf("class %s: %v", classOf(err), err)
	}
}
