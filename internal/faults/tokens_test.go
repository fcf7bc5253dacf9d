package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/adaptertest"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const triedTokens = "tokens tried at full speed against NeedLogin"

// guesses is the number of calls an hour that the rule by IP allows an address.
const guesses = 100

// TestGuessedTokens guesses tokens as fast as it can, in every framework. Two rules that need a
// login stand behind a rule by IP.
func TestGuessedTokens(t *testing.T) {
	enough := func(tries int64, _ time.Time) bool { return tries >= 600 }
	if long() {
		enough = func(_ int64, started time.Time) bool { return time.Since(started) >= 10*time.Second }
	}
	server := redistest.Start(t)
	var tries, asked int64
	var took time.Duration
	for _, f := range everyFramework(usual) {
		t.Run(f.name, func(t *testing.T) {
			g := newGuessed(t, f, server)
			started := time.Now()
			g.guess(t, func() bool { return enough(g.tries.Load(), started) })
			took += time.Since(started)
			if g.asked.Load() != guesses || g.unauthorized.Load() != guesses || g.refused.Load() != g.tries.Load()-guesses || g.ran.Load() != 0 {
				t.Errorf("of %d tries %d got 401 and %d 429, Identify was asked %d times, the handler ran %d times; want %d, the rest, %d and never",
					g.tries.Load(), g.unauthorized.Load(), g.refused.Load(), g.asked.Load(), g.ran.Load(), guesses, guesses)
			}
			tries, asked = tries+g.tries.Load(), asked+g.asked.Load()
		})
	}
	if !t.Failed() {
		report(t, triedTokens, "%d tries in five frameworks, %.0f a second: Identify was asked %d times, %d for each address, as the rule by IP allows",
			tries, float64(tries)/took.Seconds(), asked, guesses)
	}
}

// guessed is a service whose tokens are guessed.
type guessed struct {
	connect                                  func() adaptertest.Client
	tries, unauthorized, refused, asked, ran atomic.Int64
}

func newGuessed(t *testing.T, f framework, server *redistest.Server) *guessed {
	t.Helper()
	g := new(guessed)
	limiter := limitertest.New(t, core.Options{
		Redis: server.Client(t), Prefix: "tokens/" + f.name, Timeout: 10 * time.Second,
		Identify: core.BearerToken(func(context.Context, string) (string, error) { g.asked.Add(1); return "", nil }),
	})
	dial := listenAndServe(t, f, adaptertest.App{Limiter: limiter, Routes: []adaptertest.Route{{
		Path: "/shop/reply",
		Guards: []*core.Guard{
			limiter.MustGuard(core.Rule{Name: "ip", Seconds: 3600, MaxCount: guesses}),
			limiter.MustGuard(core.Rule{Name: "minute", Seconds: 60, NeedLogin: true},
				core.Rule{Name: "day", Seconds: 86_400, NeedLogin: true}, core.Rule{Name: "user", Seconds: 60, Key: core.ByUser}),
		},
		Handle: func(h adaptertest.Handling) { g.ran.Add(1); h.Text("ok") },
	}}})
	g.connect = func() adaptertest.Client { return f.connect(t, dial) }
	return g
}

// guess makes 16 callers guess until enough returns true.
func (g *guessed) guess(t *testing.T, enough func() bool) {
	var callers sync.WaitGroup
	for caller := range 16 {
		callers.Go(func() {
			client := g.connect()
			defer client.Close()
			for i := 0; !enough(); i++ {
				token := fmt.Sprintf("Bearer guess-%d-%d", caller, i)
				reply := client.Do(t, adaptertest.Call{Method: "GET", Path: "/shop/reply", Header: http.Header{"Authorization": {token}}})
				g.tries.Add(1)
				switch reply.Status {
				case http.StatusUnauthorized:
					g.unauthorized.Add(1)
				case http.StatusTooManyRequests:
					g.refused.Add(1)
				}
			}
		})
	}
	callers.Wait()
}

const (
	addressTricks = "address tricks: mapped IPv4, zones, NAT64, 6to4, leading zeros, ports, `unknown`, obfuscated and quoted identifiers, mixed lines"
	pathTricks    = "path tricks: letter case, slashes, dots, escapes, `;`, overlong and wide letters, absolute forms, methods, overriding headers"
	hostileNames  = "NUL, `}{`, invalid UTF-8, CR LF and the like in users, header values, cookies, subjects, names and errors"
)

// TestTricks tries the tricks of the adapters' own tests on all five frameworks, and reports the
// figures. The short form tries one framework only, to see that there are figures, because the
// adapters' own tests try the rest.
func TestTricks(t *testing.T) {
	var all adaptertest.Tricks
	tried, addresses, served := everyFramework(usual), 800, 200
	if !long() {
		tried, addresses, served = tried[:1], 160, 50
	}
	for _, f := range tried {
		t.Run(f.name, func(t *testing.T) {
			of := adaptertest.RunTricks(t, f.Adapter)
			all.Addresses += of.Addresses
			all.Requests += of.Requests
			all.Served += of.Served
			all.Names += of.Names
		})
	}
	if t.Failed() {
		return
	}
	if all.Addresses < addresses || all.Served < served {
		t.Errorf("too few tricks: %+v", all)
	}
	report(t, addressTricks, "%d calls to five frameworks, each counted for the caller that the design names", all.Addresses)
	report(t, pathTricks, "%d requests to four frameworks, of which %d would reach a handler: none does", all.Requests, all.Served)
	report(t, hostileNames, "%d callers in five frameworks: each has one counter of its own, keys under 200 bytes, every log line and reply well formed", all.Names)
}
