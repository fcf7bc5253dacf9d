// Command quickstart is a net/http service with limited routes, in one file to start your own from.
//
//	ADDR             where to listen: host:port, or unix:PATH; :8080 unless set
//	REDIS_URL        redis://localhost:6379: all processes on this Redis share their counts; if unset,
//	                 each counts for itself
//	REDIS_TIMEOUT    how long a call waits for Redis: 100ms unless set
//	TRUSTED_PROXIES  addresses, CIDR ranges and "unix", comma-separated, whose X-Forwarded-For is
//	                 believed; none unless set
//	CLIENT_IP_HEADER the header that these proxies write, such as Forwarded or X-Real-IP;
//	                 X-Forwarded-For unless set
//	RULES            a file with the limits, such as limits.yaml beside this one, which may change
//	                 while the service runs; the limits are those in Go unless set
//	CONSOLE_ADDR     where the operator's page listens: a free port of 127.0.0.1 unless set
//	DRAIN            how long to drain connections before the process ends: 1s unless set
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	limiter, err := newLimiter()
	if err != nil {
		return err
	}
	defer limiter.Close()
	guards, stop, err := newGuards(limiter)
	if err != nil {
		return err
	}
	defer stop()
	drain, err := time.ParseDuration(cmp.Or(os.Getenv("DRAIN"), "1s"))
	if err != nil {
		return fmt.Errorf("DRAIN: %w", err)
	}
	page, closePage, err := serveConsole(limiter)
	if err != nil {
		return err
	}
	defer closePage()
	listener, err := listen(cmp.Or(os.Getenv("ADDR"), ":8080"))
	if err != nil {
		return err
	}
	return serve(listener, routes(limiter, guards), drain, page)
}

// serveConsole serves the operator's page at CONSOLE_ADDR. By default, only this machine reaches
// it. It returns a text that says how to open it.
func serveConsole(limiter *core.Limiter) (about string, stop func(), err error) {
	token := rand.Text()
	page, err := console.New(limiter, console.Options{
		Challenge: `Basic realm="limits"`, // browsers ask for a name and a password
		Authorize: func(r *http.Request) (console.Identity, error) {
			name, password, _ := r.BasicAuth()
			if subtle.ConstantTimeCompare([]byte(password), []byte(token)) == 0 {
				return console.Identity{}, nil // a stranger
			}
			return console.Identity{Name: name, Role: console.Operator}, nil
		},
	})
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("CONSOLE_ADDR"), "127.0.0.1:0"))
	if err != nil {
		page.Close()
		return "", nil, fmt.Errorf("CONSOLE_ADDR: %w", err)
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // until stop
	about = fmt.Sprintf("The operator's page is http://%v/ (your name, and the password %s)\n\n", listener.Addr(), token)
	return about, func() { _ = server.Close(); page.Close() }, nil
}

func listen(addr string) (net.Listener, error) {
	path, ok := strings.CutPrefix(addr, "unix:")
	if !ok {
		return net.Listen("tcp", addr)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close() // another process listens there
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path) // a killed process left it behind
	}
	return net.Listen("unix", path)
}

func newLimiter() (*core.Limiter, error) {
	timeout, err := time.ParseDuration(cmp.Or(os.Getenv("REDIS_TIMEOUT"), "100ms"))
	if err != nil {
		return nil, fmt.Errorf("REDIS_TIMEOUT: %w", err)
	}
	options := core.Options{
		Identify: core.FirstOf(core.BearerToken(userOfToken), core.Cookie("session", userOfSession)),
		ClientIP: core.ClientIP{
			TrustedProxies: strings.FieldsFunc(os.Getenv("TRUSTED_PROXIES"), isComma),
			Header:         os.Getenv("CLIENT_IP_HEADER"),
		},
		Expose:  true, // so that reply can ask who is calling
		Timeout: timeout,
	}
	if url := os.Getenv("REDIS_URL"); url != "" {
		server, err := redis.ParseURL(url)
		if err != nil {
			return nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		// By default go-redis dials a dead server five times, 100 ms apart, and a call would wait
		// for that until its Timeout. With 1 it fails at once.
		server.DialerRetries = 1
		options.Redis = redis.NewClient(server) // connects on the first call
	}
	return core.New(options)
}

// userOfToken stands for your own check of tokens. It returns "" for nobody, and an error if the
// check cannot be made.
func userOfToken(_ context.Context, token string) (user string, err error) {
	return map[string]string{"alice-token": "alice", "bob-token": "bob"}[token], nil
}

// userOfSession stands for your own check of sessions.
func userOfSession(_ context.Context, session string) (user string, err error) {
	return map[string]string{"alice-session": "alice"}[session], nil
}

func isComma(r rune) bool { return r == ',' || r == ' ' }

// guards are the limits of the service.
type guards struct{ all, users, burst, fixed, reply *core.Guard }

// newGuards returns the limits that are in the file that RULES names, or those in Go. stop ends the
// following of the file.
func newGuards(limiter *core.Limiter) (g guards, stop func(), err error) {
	file := os.Getenv("RULES")
	if file == "" {
		return guardsInGo(limiter), func() {}, nil
	}
	set, err := rulefile.Watch(limiter, rulefile.Functions{}, file)
	if err != nil {
		return guards{}, nil, fmt.Errorf("RULES: %w", err)
	}
	return guardsOf(set), set.Close, nil
}

// guardsInGo returns the limits in Go. Rules without a Name count their route: /users/1 and
// /users/2 have one counter.
func guardsInGo(limiter *core.Limiter) guards {
	return guards{
		all: limiter.MustGuard(
			core.Rule{Name: "api", Seconds: 1, MaxCount: 100, Except: []string{"/healthz"}},
			core.Rule{Seconds: 10, MaxCount: 10, Paths: []string{"/limit/**"}, Except: []string{"/limit/free/**"}},
		),
		users: limiter.MustGuard(core.Rule{Seconds: 10, MaxCount: 3}),
		burst: limiter.MustGuard(core.Rule{Limit: core.PerSecond(5).Bucket(10)}),
		fixed: limiter.MustGuard(core.Rule{Limit: core.Per(4, 5*time.Second).Fixed()}),
		reply: limiter.MustGuard(core.Rule{Seconds: 60, MaxCount: 5, NeedLogin: true}),
	}
}

// guardsOf returns the limits of a file, in which every rule has a name.
func guardsOf(set *rulefile.Set) guards {
	return guards{
		all:   set.MustGuard("api", "paths"),
		users: set.MustGuard("users"),
		burst: set.MustGuard("burst"),
		fixed: set.MustGuard("fixed"),
		reply: set.MustGuard("reply"),
	}
}

func routes(limiter *core.Limiter, g guards) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", health(limiter))
	mux.Handle("GET /{$}", say("hello"))
	mux.Handle("GET /limit/anything", say("limited by its path"))
	mux.Handle("GET /limit/free/anything", say("excepted"))
	mux.Handle("GET /users/{id}", nethttplimit.With(g.users)(say("a user")))
	mux.Handle("GET /burst", nethttplimit.With(g.burst)(say("burst")))
	mux.Handle("GET /fixed", nethttplimit.With(g.fixed)(say("fixed")))
	mux.Handle("POST /reply", nethttplimit.With(g.reply)(http.HandlerFunc(reply)))

	// Around the mux the rules hold for every route, those that do not exist included.
	return nethttplimit.With(g.all)(mux)
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, text) }
}

// health answers health checks: 200 while the process serves, and whether its limits are counted.
func health(limiter *core.Limiter) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "healthy")
		var failure *core.StoreError
		if err := limiter.Ping(r.Context()); err == nil {
			fmt.Fprintln(w, "limits are counted")
		} else if errors.As(err, &failure) {
			fmt.Fprintf(w, "limits are not counted: %s\n", failure.Class)
		}
	}
}

// reply knows its user: the rule before it has asked who is calling.
func reply(w http.ResponseWriter, r *http.Request) {
	user, _ := core.UserFrom(r.Context())
	fmt.Fprintln(w, user, "has replied")
}

// serve serves until SIGINT or SIGTERM. Then health checks fail and each reply is the last of its
// connection for the time drain, so that a proxy makes its next call elsewhere. Finally calls under
// way have five seconds to end.
func serve(listener net.Listener, handler http.Handler, drain time.Duration, page string) error {
	var draining atomic.Bool
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if draining.Load() {
			w.Header().Set("Connection", "close")
			if r.URL.Path == "/healthz" {
				http.Error(w, "draining", http.StatusServiceUnavailable)
				return
			}
		}
		handler.ServeHTTP(w, r)
	})
	signalled, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	explain(listener.Addr(), page)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-signalled.Done():
	}
	restore() // a second signal ends the process at once
	draining.Store(true)
	time.Sleep(drain)
	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return server.Shutdown(patience)
}

func explain(addr net.Addr, page string) {
	url := "http://" + strings.Replace(addr.String(), "[::]", "localhost", 1) // [::] is all of this machine's addresses
	if addr.Network() == "unix" {
		url = "--unix-socket " + addr.String() + " http://localhost"
	}
	fmt.Printf("listening on %v\n%s%s", addr, strings.ReplaceAll(about, "URL", url), page)
}

const about = `
  all routes but GET /healthz   100 calls in 1 s per client
  POST /reply                   5 in 60 s per user: alice-token, bob-token, or cookie session=alice-session
  GET /limit/anything           10 in 10 s per client, GET /limit/free/anything excepted
  GET /users/1                  3 in 10 s per client, whatever the id
  GET /burst                    10 at once per client, and 5 more in each second
  GET /fixed                    4 in 5 s per client

Try:

  curl -i URL/
  for i in 1 2 3 4; do curl -s -o /dev/null -w '%{http_code}\n' URL/users/$i; done   # the fourth: 429
  for i in 1 2 3 4 5 6; do curl -si -X POST -H 'Authorization: Bearer alice-token' URL/reply; echo; done   # the sixth: 429

`
