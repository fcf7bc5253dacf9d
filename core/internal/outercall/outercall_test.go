package outercall_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/outercall"
)

var hourly = algorithm.Windowed(algorithm.FixedWindow, 5, 3_600_000_000)

func counters(keys ...string) (all []algorithm.Counter) {
	for _, key := range keys {
		all = append(all, algorithm.Counter{Key: []byte(key), Limit: &hourly})
	}
	return all
}

// A call is remembered while its handler runs, even if that panics, unless another call has taken
// its place.
func TestACallIsRememberedWhileItsHandlerRuns(t *testing.T) {
	var calls outercall.Calls
	one, two := calls.New(outercall.ID{Header: 1}, nil), calls.New(outercall.ID{Header: 2}, nil)
	wantCurrent := func(want *outercall.Call) {
		t.Helper()
		if calls.Current() != want {
			t.Errorf("%+v is remembered, want %+v", calls.Current(), want)
		}
	}
	wantCurrent(nil)
	status := around(one, func() int {
		wantCurrent(one)
		around(two, func() int { wantCurrent(two); return 200 })
		wantCurrent(nil)
		return 201
	})
	if wantCurrent(nil); status != 201 {
		t.Errorf("the handler returned %d", status)
	}
	func() {
		defer func() { _ = recover() }()
		around(one, func() int { panic("of the handler") })
	}()
	wantCurrent(nil)
	// The second call begins within the first, and ends after it.
	var after func()
	around(one, func() int {
		began, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			around(two, func() int { close(began); <-end; return 200 })
		}()
		<-began
		after = func() { close(end); <-ended }
		return 200
	})
	wantCurrent(two)
	after()
	wantCurrent(nil)
}

// A call is found by its ID and its counters. Bans are no counters that it charges.
func TestWhatACallHasCharged(t *testing.T) {
	var calls outercall.Calls
	own := counters("a", "b", "banned")
	own[2].Limit = &algorithm.Limit{Kind: algorithm.Ban}
	id := outercall.ID{Call: "id", Path: "/x"}
	call := calls.New(id, own)
	copy(own[0].Key, "~") // the keys are valid during the check only
	for want, others := range map[int][]algorithm.Counter{
		-1: counters("c", "banned"), 0: counters("a", "b"), 1: counters("c", "b"),
	} {
		if at := call.Charged(others); at != want {
			t.Errorf("%d was charged, want %d", at, want)
		}
	}
	if !call.Is(id) || call.Is(outercall.ID{Call: "id", Path: "/y"}) {
		t.Error("the call is not told from others")
	}
	if calls.New(outercall.ID{}, own) != nil {
		t.Error("a call that nothing identifies is remembered")
	}
}

// Calls are due at most once in a tenth of a second.
func TestCallsAreSeldomDue(t *testing.T) {
	var calls outercall.Calls
	due, start := 0, time.Now()
	for range 1000 {
		if calls.Due() {
			due++
		}
	}
	if most := 1 + int(time.Since(start)/(100*time.Millisecond)); due == 0 || due > most {
		t.Errorf("%d are due, want 1 to %d", due, most)
	}
}

// around runs a handler as its call does.
func around(o *outercall.Call, handle func() int) int {
	o.Begin()
	defer o.End()
	return handle()
}
