// Command service is a service with limited routes and the operator's page, for the tests in a
// browser. Several of them share one Redis.
//
//	service REDIS RULES
//
// REDIS is the address of a server, and RULES a rule file (see package rulefile). The service
// listens on a free port of the loopback address, which is its first line of output. It ends when
// its standard input does, so that it does not outlive the tests.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// patient is a Timeout that a healthy Redis never needs, however busy the machine.
const patient = time.Minute

// people are the users of the page. Each has the password "secret".
var people = map[string]console.Role{"olga": console.Operator, "victor": console.Viewer}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(redisAddr, rules string) error {
	client := redis.NewClient(&redis.Options{Addr: redisAddr})
	limiter, err := core.New(core.Options{
		Redis: client, Timeout: patient,
		Identify: identify,
	})
	if err != nil {
		return err
	}
	defer limiter.Close()
	set, err := rulefile.Load(limiter, rulefile.Functions{}, rules)
	if err != nil {
		return err
	}
	defer set.Close()
	page, err := console.New(limiter, console.Options{Authorize: authorize, Challenge: `Basic realm="limits"`})
	if err != nil {
		return err
	}
	defer page.Close()
	return serve(routes(set, page))
}

// identify returns the user whom a header names, in the escapes of a URL's query, so that a test can
// send any bytes.
func identify(r core.Request) (string, error) {
	return url.QueryUnescape(strings.Join(r.Header("X-User"), ","))
}

// authorize identifies the user by the name and the password that the browser sends.
func authorize(r *http.Request) (console.Identity, error) {
	name, password, _ := r.BasicAuth()
	if password != "secret" {
		return console.Identity{}, nil
	}
	return console.Identity{Name: name, Role: people[name]}, nil
}

// routes returns the page, and for each rule a route, which is the letters of the rule's name.
func routes(set *rulefile.Set, page http.Handler) http.Handler {
	mux := http.NewServeMux()
	done := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Done.") })
	for _, rule := range set.Names() {
		mux.Handle("GET /"+strings.Map(letters, rule), nethttplimit.With(set.MustGuard(rule))(done))
	}
	mux.Handle("/limits/", page)
	return mux
}

func letters(r rune) rune {
	if r < 'a' || r > 'z' {
		return -1
	}
	return r
}

// serve serves until the standard input ends.
func serve(handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = listener.Close()
	}()
	if err := http.Serve(listener, handler); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
