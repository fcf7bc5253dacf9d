package setups_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// TestNoConnection tries the ways in which a connection cannot be set up. Each has a class, and the
// log has the level and the advice for it.
func TestNoConnection(t *testing.T) {
	plain, secret, stopped := redistest.Start(t), redistest.Start(t, "--requirepass", "secret"), redistest.Start(t)
	full := redistest.Start(t, "--maxclients", "1")
	// The connection is in use for as long as the test runs.
	if err := full.Client(t).Ping(background).Err(); err != nil {
		t.Fatal(err)
	}
	stopped.Stop()
	bounded.Cleanup(t, stopped.Continue)
	p := newAuthority(t)
	open, demanding := p.start(t, "no"), p.start(t, "yes")
	trusting := func() *tls.Config { return &tls.Config{RootCAs: p.roots} }
	named, late := trusting(), trusting()
	named.ServerName = "other.example"
	late.Time = func() time.Time { return time.Now().AddDate(10, 0, 0) }

	const slowly = 2500 * time.Millisecond // longer than the Timeout, so that the reason is hidden
	const warn, wrong = "level=WARN", "level=ERROR"
	for name, test := range map[string]struct {
		options redis.Options
		class   core.StoreErrorClass
		level   string
		change  string
	}{
		"refused":                    {redis.Options{Addr: "127.0.0.1:1"}, core.StoreUnreachable, warn, "start Redis"},
		"nobody answers":             {redis.Options{Dialer: blackHole, DialTimeout: slowly, DialerRetries: 1}, core.StoreUnreachable, warn, "open the network"},
		"accepted and forgotten":     {redis.Options{Addr: listen(t, nil)}, core.StoreUnreachable, warn, "whether Redis hangs"},
		"stopped":                    {redis.Options{Addr: stopped.Addr()}, core.StoreUnreachable, warn, "whether Redis hangs"},
		"stopped, TLS":               {redis.Options{Addr: stopped.Addr(), TLSConfig: trusting(), DialTimeout: slowly, DialerRetries: 1}, core.StoreUnreachable, warn, "whether Redis hangs"},
		"reset":                      {redis.Options{Addr: listen(t, reset)}, core.StoreUnreachable, warn, "see Redis's log"},
		"closed after the first":     {redis.Options{Addr: listen(t, closeAfterHello)}, core.StoreUnreachable, warn, "see Redis's log"},
		"too many clients":           {redis.Options{Addr: full.Addr()}, core.StoreUnreachable, warn, "raise maxclients"},
		"no Redis":                   {redis.Options{Addr: listen(t, answerAsHTTP)}, core.StoreUnreachable, wrong, "correct the address"},
		"TLS to a plain port":        {redis.Options{Addr: plain.Addr(), TLSConfig: trusting(), DialTimeout: slowly, DialerRetries: 1}, core.StoreUnreachable, wrong, "without TLSConfig"},
		"no TLS to a TLS port":       {redis.Options{Addr: open}, core.StoreUnreachable, wrong, "rediss://"},
		"a certificate is demanded":  {redis.Options{Addr: demanding, TLSConfig: trusting()}, core.StoreUnreachable, wrong, "set Certificates"},
		"unknown CA":                 {redis.Options{Addr: open, TLSConfig: &tls.Config{}}, core.StoreUnreachable, wrong, "to RootCAs"},
		"another host's certificate": {redis.Options{Addr: open, TLSConfig: named}, core.StoreUnreachable, wrong, "set ServerName"},
		"an old certificate":         {redis.Options{Addr: open, TLSConfig: late}, core.StoreUnreachable, wrong, "renew"},
		"no password":                {redis.Options{Addr: secret.Addr()}, core.StoreRefused, wrong, "set Username and Password"},
		"a wrong password":           {redis.Options{Addr: secret.Addr(), Password: "other"}, core.StoreRefused, wrong, "as Redis has them"},
		"a wrong user":               {redis.Options{Addr: secret.Addr(), Username: "other", Password: "secret"}, core.StoreRefused, wrong, "as Redis has them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := redis.NewClient(&test.options)
			defer func() { _ = client.Close() }()
			wantExplained(t, client, test.class, test.level, test.change)
		})
	}
}

// The clients of clusters, Sentinels and rings have their own ways to fail.
func TestNoConnectionOfOtherClients(t *testing.T) {
	const warn, wrong = "level=WARN", "level=ERROR"
	plain := redistest.Start(t)
	t.Run("a cluster's client", func(t *testing.T) {
		t.Parallel()
		for addr, change := range map[string]string{plain.Addr(): "make Options.Redis with redis.NewClient", listen(t, reset): "see Redis's log"} {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
			class, level := core.StoreUnreachable, warn
			if addr == plain.Addr() {
				class, level = core.StoreRefused, wrong
			}
			wantExplained(t, client, class, level, change)
			_ = client.Close()
		}
	})
	t.Run("a client that asks Sentinels", func(t *testing.T) {
		t.Parallel()
		client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "one", SentinelAddrs: []string{"127.0.0.1:1"}, DialerRetries: 1})
		wantExplained(t, client, core.StoreUnreachable, warn, "start the Sentinels")
		_ = client.Close()
	})
	t.Run("a ring's client", func(t *testing.T) {
		t.Parallel()
		client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
		wantExplained(t, client, core.StoreUnreachable, warn, "start Redis")
		_ = client.Close()
	})
}

// wantExplained calls one at a time, and many at once. All calls must end with the class, and the
// log must give the advice and no other.
func wantExplained(t *testing.T, client redis.UniversalClient, class core.StoreErrorClass, level, change string) {
	t.Helper()
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: 2 * time.Second, Logger: log.Logger()})
	call := func() {
		_, err := limiter.MustCounter("name", core.PerHour(5)).Allow(background, "subject")
		var failed *core.StoreError
		if !errors.As(err, &failed) || failed.Class != class && failed.Class != core.StoreBreakerOpen {
			t.Errorf("%v, want the class %s", err, class)
		}
	}
	call()
	var all sync.WaitGroup
	for range 30 {
		all.Go(call)
	}
	all.Wait()
	redistest.WaitUntil(func() bool { return log.Count(level, "change=", change) > 0 }, patient)
	limiter.Close()
	if log.Count(level, "change=", change) == 0 || log.Count("change=") != log.Count(change) {
		t.Errorf("want %s, and the advice to %s and no other, got: %s", level, change, log.String())
	}
}

// The advice to make the pool larger is given only if all its connections work and are in use.
func TestAPoolThatIsTooSmall(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t, func(o *redis.Options) { o.PoolSize = 1 })
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: time.Second, Logger: log.Logger()})
	call := func() error {
		_, err := limiter.MustCounter("name", core.PerHour(1000)).Allow(background, "subject")
		return err
	}
	if !redistest.WaitUntil(func() bool { return call() == nil }, patient) {
		t.Fatal("no call passes")
	}
	var held sync.WaitGroup
	held.Go(func() { client.BLPop(background, patient, "held") })
	operator := server.Client(t)
	if !redistest.WaitUntil(func() bool { return strings.Contains(operator.ClientList(background).Val(), "cmd=blpop") }, patient) {
		t.Fatal("the connection is not held")
	}
	var failed *core.StoreError
	if err := call(); !errors.As(err, &failed) || failed.Class != core.StoreNoConnection || failed.Class.MayHaveCharged() {
		t.Errorf("%v", err)
	}
	operator.RPush(background, "held", "go on")
	held.Wait()
	if log.Count("level=WARN", "class=no_connection", "raise PoolSize") != 1 {
		t.Errorf("got: %s", log.String())
	}
}

// More calls than a server answers in time are no reason to make the pool larger.
func TestCallsThatWaitForOthers(t *testing.T) {
	server := redistest.Start(t)
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: server.Client(t), Timeout: time.Second, Logger: log.Logger()})
	storm := func() {
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() { _, _ = limiter.MustCounter("name", core.PerHour(1000)).Allow(background, "subject") })
		}
		all.Wait()
	}
	storm() // opens the connections
	server.Stop()
	defer server.Continue()
	storm()
	limiter.Close()
	if log.Count("class=timeout") == 0 || log.Count("PoolSize") > 0 {
		t.Errorf("got: %s", log.String())
	}
}

// The error of a Redis that is too old says so, with the version. The replies are those of Redis
// 6.0.20 and 5.0.14.
func TestARedisThatIsTooOld(t *testing.T) {
	server := redistest.Start(t)
	old := listen(t, func(conn net.Conn) { answerAsRedis6(conn, server.Addr()) })
	client := redis.NewClient(&redis.Options{Addr: old})
	defer func() { _ = client.Close() }()
	var log logtest.Log
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient, Logger: log.Logger()})
	for end := time.Now().Add(patient); ; time.Sleep(5 * time.Millisecond) {
		_, err := limiter.MustCounter("name", core.PerHour(5)).Allow(background, "subject")
		var failed *core.StoreError
		if !errors.As(err, &failed) || failed.Class != core.StoreRefused || !strings.Contains(err.Error(), "Redis 6.2 or later is required") {
			t.Fatal(err)
		}
		if strings.Contains(err.Error(), "this is 6.0.20") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the version is never named: %v", err)
		}
	}
	if log.Count("level=ERROR", "class=refused_by_redis", "run a newer Redis") != 1 || log.Count("level=ERROR", "too old", "version=6.0.20") != 1 {
		t.Errorf("got: %s", log.String())
	}
}

// answerAsRedis6 answers scripts and INFO as Redis 6.0 does. A real server answers the rest.
func answerAsRedis6(client net.Conn, addr string) {
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() { _, _ = io.Copy(client, server) }()
	said := make([]byte, 64<<10)
	for {
		n, err := client.Read(said)
		if err != nil {
			return
		}
		to, reply := io.Writer(client), ""
		switch command := string(said[:n]); {
		case strings.Contains(command, "\r\neval"):
			reply = "-ERR Error running script (call to f_f60d843d630fe83f42638e5f7fa22bafb4ac7786): @user_script:47: ERR syntax error\r\n"
		case strings.Contains(command, "\r\ninfo\r\n"):
			reply = "$34\r\n# Server\r\nredis_version:6.0.20\r\n..\r\n"
		default:
			to, reply = server, command
		}
		if _, err := io.WriteString(to, reply); err != nil {
			return
		}
	}
}
