package faults_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const lostReplyFault = "a reply is lost after the write"

// A call whose reply is lost costs one permit, and the rule's policy decides it.
func TestReplyLost(t *testing.T) {
	lost := 0
	for name, how := range map[string]toxic{
		"swallowed": {"timeout", "downstream", `"timeout": 0`},
		"closed":    {"limit_data", "downstream", `"bytes": 0`},
		"reset":     {"reset_peer", "downstream", `"timeout": 0`},
	} {
		t.Run(name, func(t *testing.T) { lost += loseReplies(t, how) })
	}
	report(t, lostReplyFault, "%d replies lost, each call charged once", lost)
}

// loseReplies makes calls whose replies are lost, and returns how many.
func loseReplies(t *testing.T, how toxic) int {
	server, limit := redistest.Start(t), core.PerDay(100)
	w := newWire(t, server)
	s := newService(t, server, w.over)
	ways, crowd := s.ways(limit), make([]string, 64)
	for _, ask := range ways { // loads the script; otherwise a lost reply might be NOSCRIPT
		if d, err := ask(context.Background(), "before"); !decided(d, err) {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	s.connect(16)
	w.inject(how)
	for way, ask := range ways { // over open connections, so each is sent
		d, err := ask(context.Background(), "first")
		wantPolicy(t, way, d, err)
	}
	together(len(crowd), func(i int) {
		crowd[i] = fmt.Sprint("crowd", i)
		for way, ask := range ways {
			d, err := ask(context.Background(), crowd[i])
			wantPolicy(t, way, d, err)
		}
	})
	w.restore()
	s.rest()
	lost := 0
	for way := range ways {
		if used := charged(t, server, way, limit, []string{"first"})[0]; used != 1 {
			t.Errorf("%s: charged %d, want once", way, used)
		}
		lost++
		for i, used := range charged(t, server, way, limit, crowd) {
			if used > 1 {
				t.Errorf("%s: %s is charged %d", way, crowd[i], used)
			}
			lost += used
		}
	}
	return lost
}
