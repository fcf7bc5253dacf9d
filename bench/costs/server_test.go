package main

import (
	"context"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// A limiter that remembers a refusal does not call the server, which is an error here. A new
// limiter calls it.
func TestRefusedCallsReachTheServer(t *testing.T) {
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	limiter, err := s.newLimiter()
	if err != nil {
		t.Fatal(err)
	}
	defer limiter.Close()
	ctx, r := context.Background(), row{"FixedWindow", core.PerHour(1).Fixed()}
	call := callOf(limiter, r)
	for _, allowed := range []bool{true, false} {
		if err := wantDecided(ctx, call, "user", allowed); err != nil {
			t.Fatal(err)
		}
	}
	if err := wantDecided(ctx, call, "user", false); err == nil || !strings.Contains(err.Error(), "deny_cache") {
		t.Errorf("a refusal that is remembered: %v", err)
	}
	if err := callAll(ctx, call, 1, true); err != nil {
		t.Fatal(err)
	}
	micros, err := s.timed(ctx, func() error { return s.refuseAll(ctx, r) })
	if err != nil || micros <= 0 {
		t.Errorf("%v µs, %v", micros, err)
	}
	if err := callAll(ctx, call, 1, true); err == nil {
		t.Error("a refusal passes as an allowed call")
	}
}

// Refunds are measured one by one, and reach the server.
func TestRefundsReachTheServer(t *testing.T) {
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if micros, err := s.refund(context.Background(), 100); err != nil || micros <= 0 {
		t.Errorf("%v µs, %v", micros, err)
	}
}

// A key too many or too few is an error, because the average would be wrong.
func TestBytesNeedOneKeyForEachSubject(t *testing.T) {
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	_, err = s.bytes(context.Background())
	if err == nil || err.Error() != "0 keys for 500 subjects" {
		t.Errorf("no keys: %v", err)
	}
}
