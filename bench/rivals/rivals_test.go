package rivals

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
)

// ten is a limit by which every rival must admit ten calls during the test, however it counts.
var ten = Limit{Max: 10, Window: time.Hour, Permit: 5 * time.Minute}

// A rival that admits everything, or nothing, would look fast.
func TestRivalsInProcessLimit(t *testing.T) {
	for _, r := range InThisProcess {
		allow, closeIt := r.Open(ten, 10)
		admitted := 0
		for range 100 {
			if allow("user:alice") {
				admitted++
			}
		}
		if admitted != ten.Max || !allow("user:bob") {
			t.Errorf("%s admitted %d of 100, want %d, and another key", r.Name, admitted, ten.Max)
		}
		closeIt()
	}
}

// Every limit that is measured can be had of every rival.
func TestRivalsInProcessOpen(t *testing.T) {
	for _, r := range InThisProcess {
		for _, limit := range []Limit{Roomy, RoomyHot} {
			allow, closeIt := r.Open(limit, 10)
			if !allow("user:alice") {
				t.Errorf("%s refuses the first call by %+v", r.Name, limit)
			}
			closeIt()
		}
	}
}

func TestRivalsOnRedisLimit(t *testing.T) {
	server, err := harness.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	for _, r := range OnRedis {
		if err := server.Flush(); err != nil {
			t.Fatal(err)
		}
		limiter, err := r.Open(Place{Addr: server.Addr}, ten)
		if err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		admitted := 0
		for range 100 {
			allowed, err := limiter.Allow(t.Context(), "user:alice")
			if err != nil {
				t.Fatalf("%s: %v", r.Name, err)
			}
			if allowed {
				admitted++
			}
		}
		if admitted != ten.Max {
			t.Errorf("%s admitted %d of 100, want %d", r.Name, admitted, ten.Max)
		}
		limiter.Close()
	}
}

// A caller panics when its call is not served.
func TestMiddlewaresServe(t *testing.T) {
	for _, m := range Middlewares {
		newCaller, closeIt := m.Open()
		call := newCaller()
		for range 3 {
			call()
		}
		closeIt()
	}
}

// BenchmarkMiddlewares measures each middleware by itself, for profiles and counts of instructions.
func BenchmarkMiddlewares(b *testing.B) {
	for _, m := range Middlewares {
		b.Run(m.Framework+"/"+m.Name, func(b *testing.B) {
			newCaller, closeIt := m.Open()
			defer closeIt()
			call := newCaller()
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

func TestNamesAreOneRivalEach(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range OnRedis {
		if seen[r.Name] {
			t.Errorf("two rivals on Redis are called %s", r.Name)
		}
		seen[r.Name] = true
	}
}
