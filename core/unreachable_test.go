package core_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
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
	t.Cleanup(stopped.Continue)
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
	for end := time.Now().Add(patient); log.Count(level, "change=", change) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			break
		}
	}
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
	for end := time.Now().Add(patient); call() != nil; {
		if time.Now().After(end) {
			t.Fatal("no call passes")
		}
	}
	var held sync.WaitGroup
	held.Go(func() { client.BLPop(background, patient, "held") })
	operator := server.Client(t)
	for !strings.Contains(operator.ClientList(background).Val(), "cmd=blpop") {
		time.Sleep(time.Millisecond)
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

// listen returns the address of a listener. It answers each connection with a function, or only
// accepts it.
func listen(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		conns.Wait()
	})
	conns.Go(func() {
		var all []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			all = append(all, conn)
			if answer != nil {
				conns.Go(func() {
					answer(conn)
					_ = conn.Close()
				})
			}
		}
		for _, conn := range all {
			_ = conn.Close()
		}
	})
	return listener.Addr().String()
}

func reset(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

func closeAfterHello(conn net.Conn) { _, _ = conn.Read(make([]byte, 1000)) }

func answerAsHTTP(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1000))
	_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
}

// blackHole dials an address that never answers.
func blackHole(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
}

// authority is a CA that has signed the certificate of a server.
type authority struct {
	roots         *x509.CertPool
	pair          tls.Certificate
	ca, cert, key string // files
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	dir := t.TempDir()
	a := &authority{roots: x509.NewCertPool(), ca: filepath.Join(dir, "ca"), cert: filepath.Join(dir, "cert"), key: filepath.Join(dir, "key")}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	caKey, serverKey := newKey(t), newKey(t)
	signed := func(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, caKey)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	der, err := x509.MarshalECPrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	caPEM, certPEM, keyPEM := signed(ca, caKey), signed(server, serverKey), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	a.roots.AppendCertsFromPEM(caPEM)
	for file, content := range map[string][]byte{a.ca: caPEM, a.cert: certPEM, a.key: keyPEM} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if a.pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// speaksTLS reports whether the server at an address completes a handshake.
func speaksTLS(addr string) bool {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Second}, Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.Dial("tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// start starts a server with a TLS port and returns that port's address. The server may demand a
// certificate of its clients. If it was built without TLS, it gets a front that has TLS.
func (a *authority) start(t *testing.T, demands string) (addr string) {
	t.Helper()
	server := redistest.Start(t)
	client := server.Client(t)
	set := func(name, value string) error { return client.ConfigSet(background, name, value).Err() }
	err := errors.Join(set("tls-cert-file", a.cert), set("tls-key-file", a.key), set("tls-ca-cert-file", a.ca), set("tls-auth-clients", demands))
	for try := 0; err == nil && try < 5; try++ { // somebody else may take the port first
		free := listenOnce(t)
		_, port, _ := net.SplitHostPort(free)
		if set("tls-port", port) != nil {
			continue
		}
		if speaksTLS(free) { // Redis 7.4 takes the setting without TLS, too
			return free
		}
		break
	}
	plain := redistest.Start(t) // the other server may have a TLS port that does not work
	return listen(t, func(conn net.Conn) { a.front(conn, plain.Addr(), demands) })
}

// listenOnce returns an address on which nobody listened a moment ago.
func listenOnce(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// front speaks TLS with a client, and forwards what both sides send.
func (a *authority) front(conn net.Conn, addr, demands string) {
	config := &tls.Config{Certificates: []tls.Certificate{a.pair}}
	if demands == "yes" {
		config.ClientAuth = tls.RequireAnyClientCert
	}
	client := tls.Server(conn, config)
	server, err := net.Dial("tcp", addr)
	if err != nil || client.Handshake() != nil {
		return
	}
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	_, _ = io.Copy(server, client)
	_ = server.Close()
}
