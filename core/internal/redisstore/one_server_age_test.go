package redisstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// probedNode answers probes as one server does or, if it is split, as a proxy that spreads keys over
// several. If it is down, it answers nothing.
type probedNode struct {
	pipelineNode
	value       string
	split, down bool
}

func (n *probedNode) processAll(_ context.Context, cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		switch c := cmd.(type) {
		case *listCommand:
			found := make([]string, probeKeys)
			for i := range found {
				if i == 0 || !n.split {
					found[i] = n.value
				}
			}
			c.Args()
			c.SetVal(found)
		case *valueCommand:
			n.value = c.Args()[2].(string)
		}
		if n.down {
			cmd.SetErr(late)
		}
	}
	return nil
}

// A proxy may get another server without a new connection. So a proof that is in use is made again after
// some time, before it ends, and is over if it is false by then. One that cannot be made again ends.
func TestProofEndsInTime(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*probedNode)
		ends   time.Duration
	}{
		"one server":  {func(*probedNode) {}, 24 * time.Hour},
		"another one": {func(n *probedNode) { n.split = true }, renewProof + 2*time.Second}, // found by the call before
		"no answer":   {func(n *probedNode) { n.down = true }, proofLife},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, node := newCommon(time.Second), new(probedNode)
				defer c.close()
				c.keyHead = "test:{"
				p := &oneServerProof{node: node, common: c}
				if !p.await(t.Context()) {
					t.Fatal("there is no proof")
				}
				test.change(node)
				for age := time.Duration(0); age < 3*proofLife; age += time.Second {
					synctest.Wait()
					if holds := p.wanted(); holds != (age < test.ends) {
						t.Errorf("%v after it was made, the proof holds: %t", age, holds)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// If the proof is ended while it is being made again, what is read on the former connection does not count.
func TestProofEndsWhileItIsMade(t *testing.T) {
	c, node := newCommon(time.Second), &slowNode{asked: make(chan struct{}), answer: make(chan struct{})}
	defer c.close()
	c.keyHead = "test:{"
	p := &oneServerProof{node: node, common: c}
	p.wanted()
	<-node.asked
	p.end()
	close(node.answer)
	c.background.Wait()
	if !p.ends.IsZero() {
		t.Error("the proof holds")
	}
}

// slowNode answers the first probe when it is told to.
type slowNode struct {
	probedNode
	asked, answer chan struct{}
}

func (n *slowNode) processAll(ctx context.Context, cmds []redis.Cmder) error {
	if _, reads := cmds[0].(*listCommand); reads {
		close(n.asked)
		<-n.answer
	}
	return n.probedNode.processAll(ctx, cmds)
}
