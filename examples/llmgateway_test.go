package examples_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// The example answers as it says, and as a service with limits should.
func TestLLMGateway(t *testing.T) {
	s := start(t, "llmgateway")
	ask := func(token, body string) (status int, text string) {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway/generate", strings.NewReader(body))
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := s.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(data)
	}
	for _, test := range []struct {
		token, body string
		status      int
	}{
		{"", `{"prompt": "why?", "max_tokens": 300}`, http.StatusUnauthorized},
		{"acme/alice", `{"prompt": "why?", "max_tokens": 300}`, http.StatusOK},
		{"acme/alice", `{"prompt": "why?"}`, http.StatusBadRequest},
		{"acme/alice", `{"prompt": "` + strings.Repeat("why ", 210_000) + `", "max_tokens": 300}`, http.StatusRequestEntityTooLarge},
	} {
		status, text := ask(test.token, test.body)
		if lines := strings.Count(text, "\n"); status != test.status || test.status == http.StatusOK && lines != 15 {
			t.Errorf("%.60s: status %d, want %d, %.60s (%d lines)", test.body, status, test.status, text, lines)
		}
	}
	tooLong := `{"prompt": "` + strings.Repeat("why ", 110_000) + `", "max_tokens": 300}` // the model refuses it, and uses nothing
	for range 3 {
		status, _ := ask("acme/bob", tooLong)
		for end := time.Now().Add(time.Minute); status == http.StatusTooManyRequests && time.Now().Before(end); { // until the former call is settled
			status, _ = ask("acme/bob", tooLong)
		}
		if status != http.StatusBadGateway {
			t.Errorf("a prompt that the model refuses: status %d, want %d", status, http.StatusBadGateway)
		}
	}
}

// While callers hang up, a process is killed, and Redis hangs or is killed, the counters hold what the
// settled calls used, and what all others were charged, exactly.
func TestTokensAreExactUnderFaults(t *testing.T) {
	for {
		month := time.Now().UTC().Month()
		g := &gateways{T: t, rdb: redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")} // it keeps its memory
		g.underFaults()
		wrong := g.accounts().compare(t, g.rdb)
		if month != time.Now().UTC().Month() {
			continue // the budget has begun anew
		}
		for _, text := range wrong {
			t.Error(text)
		}
		return
	}
}

// gateways are three processes of the example, and those that were killed.
type gateways struct {
	*testing.T
	rdb      *redistest.Server
	services [3]atomic.Pointer[service]
	journals []string

	answered, hungUp, refused, unavailable atomic.Int64
}

// start starts the process at i, in place of the one that was there.
func (g *gateways) start(i int) {
	g.Helper()
	journal := filepath.Join(g.TempDir(), "journal")
	g.journals = append(g.journals, journal)
	g.services[i].Store(start(g.T, "llmgateway", "REDIS_URL=redis://"+g.rdb.Addr(), "REDIS_TIMEOUT=2s", "JOURNAL="+journal))
}

// underFaults has workers call three new processes until each fault is over, and ends the processes.
func (g *gateways) underFaults() {
	for i := range g.services {
		g.start(i)
	}
	ctx, stop := context.WithCancel(g.Context())
	var workers sync.WaitGroup
	for i := range 24 {
		workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				g.call(ctx, i, n)
			}
		})
	}
	for _, fault := range []struct {
		name  string
		do    func()
		until *atomic.Int64
	}{
		{"callers hang up", func() {}, &g.hungUp},
		{"limits are used up", func() {}, &g.refused},
		{"a process is killed", func() { g.services[0].Load().kill(); g.start(0) }, &g.answered},
		{"Redis hangs", g.rdb.Stop, &g.unavailable},
		{"Redis goes on", g.rdb.Continue, &g.answered},
		{"Redis is killed", g.rdb.Kill, &g.unavailable},
		{"Redis is back", g.rdb.Restart, &g.answered},
	} {
		fault.do()
		before := fault.until.Load()
		limitertest.Eventually(g.T, fault.name, func() bool { return fault.until.Load() >= before+30 })
	}
	stop()
	workers.Wait()
	for i := range g.services {
		g.services[i].Load().end()
	}
}

// call makes the nth call of a worker. Half of them are of one user in each team, who uses up a limit.
// One in five hangs up early, and one late, when more than the estimate was charged.
func (g *gateways) call(ctx context.Context, worker, n int) {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	user, most, reads := "greedy", 4+40*worker, math.MaxInt
	if n%2 == 0 {
		user = fmt.Sprintf("user%d-%d", worker, n/20)
	}
	switch n % 5 {
	case 1:
		reads = 1
	case 2:
		most, reads = 4000, 20
	}
	body := fmt.Sprintf(`{"prompt": %q, "max_tokens": %d}`, strings.Repeat("why ", worker+n%10), most)
	request, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway/generate", strings.NewReader(body))
	request.Header.Set("Authorization", fmt.Sprintf("Bearer team%d/%s", worker%3, user))
	response, err := g.services[(worker+n)%3].Load().client.Do(request)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusTooManyRequests:
		g.refused.Add(1)
	case http.StatusServiceUnavailable:
		g.unavailable.Add(1)
	default:
		g.read(response.Body, reads)
	}
}

// read reads some lines of an answer.
func (g *gateways) read(body io.Reader, most int) {
	lines := bufio.NewScanner(body)
	for read := 0; lines.Scan(); {
		if read++; read == most {
			if most > 1 {
				g.hungUp.Add(1)
			}
			return
		}
	}
	if lines.Err() == nil {
		g.answered.Add(1)
	}
}
