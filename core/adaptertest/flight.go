package adaptertest

import (
	"context"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

// gate holds handlers until the test releases them. The end of the test releases all of them.
type gate struct {
	t       *testing.T
	entered chan chan struct{}
}

func newGate(t *testing.T) *gate { return &gate{t, make(chan chan struct{})} }

// hold is called by a handler. It returns when the test lets the handler go.
func (g *gate) hold() {
	leave := make(chan struct{})
	select {
	case g.entered <- leave:
	case <-g.t.Context().Done():
		return
	}
	select {
	case <-leave:
	case <-g.t.Context().Done():
	}
}

// held is a call whose handler is held.
type held struct {
	gate  *gate
	leave chan struct{}
	reply <-chan Reply
	left  context.CancelFunc
}

// enter makes a call and returns when its handler is held.
func (s *site) enter(t *testing.T, g *gate, path string, headers ...string) *held {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	replies := make(chan Reply, 1)
	call := newCall("GET", path, headers...)
	call.Context = ctx
	s.trace.request(call)
	go func() {
		defer close(replies) // even if the client fails the test
		client := s.adapter.Connect(t, s.dial)
		defer client.Close()
		replies <- client.Do(t, call)
	}()
	bounded.Cleanup(t, func() { // by now the handlers have been released
		defer cancel()
		if t.Failed() {
			cancel()
		}
		defer time.AfterFunc(patience, cancel).Stop()
		for range replies {
		}
	})
	select {
	case leave := <-g.entered:
		return &held{g, leave, replies, cancel}
	case reply := <-replies:
		t.Fatalf("GET %s did not reach the handler: %+v", path, reply)
	case <-time.After(patience):
		t.Fatalf("GET %s neither reached its handler nor ended within %v", path, patience)
	}
	return nil
}

// end lets the handler go and returns what the caller got.
func (h *held) end() Reply {
	h.gate.t.Helper()
	close(h.leave)
	return h.wait()
}

// abandon makes the client leave while the handler is held.
func (h *held) abandon() {
	h.gate.t.Helper()
	h.left()
	if reply := h.wait(); reply.Status != 0 {
		h.gate.t.Fatalf("a client that left got %+v", reply)
	}
}

func (h *held) wait() Reply {
	h.gate.t.Helper()
	select {
	case reply := <-h.reply:
		return reply
	case <-time.After(patience):
		h.gate.t.Fatalf("a call whose handler was let go got no reply within %v", patience)
	}
	return Reply{}
}

// wantEnd lets the handler go and compares the status.
func (h *held) wantEnd(status int) {
	h.gate.t.Helper()
	if reply := h.end(); reply.Status != status {
		h.gate.t.Fatalf("a call that was let go: status %d, want %d; body %q", reply.Status, status, reply.Body)
	}
}

// eventually waits for something that may happen after the caller got its reply.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen within %v: %s", patience, what)
		}
	}
}
