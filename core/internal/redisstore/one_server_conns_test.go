package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Each new connection ends the proof, for whatever purpose it was made.
func TestNewConnectionEndsTheProof(t *testing.T) {
	server := redistest.Start(t)
	for _, test := range []struct {
		name    string
		connect func(t *testing.T, o *owner)
	}{
		{"for a command", func(t *testing.T, o *owner) {
			o.holdIdle(t)
			o.get(t, o.client)
		}},
		{"for a pipeline", func(t *testing.T, o *owner) {
			o.proxy.change(toOne(server))
			_, _ = o.client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "owner").Err() })
		}},
		{"in the background", func(t *testing.T, o *owner) {
			before := o.dials.Load()
			o.holdIdle(t)
			wantSoon(t, "the pool has made another connection", func() bool { return o.dials.Load() > before })
			wantSoon(t, "it is idle", func() bool { return o.client.PoolStats().TotalConns > uint32(len(o.held)) })
		}},
		{"too late for its command", func(t *testing.T, o *owner) {
			o.holdIdle(t)
			release := o.holdDials()
			ctx, leave := context.WithCancel(t.Context())
			before := o.dials.Load()
			go func() {
				for o.dials.Load() == before {
					runtime.Gosched()
				}
				leave()
			}()
			if err := o.client.Get(ctx, "owner").Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want no connection", err)
			}
			o.letGo()
			wantSoon(t, "there is a proof", o.store.Prove)
			total := o.client.PoolStats().TotalConns
			release()
			wantSoon(t, "the connection is idle", func() bool { return o.client.PoolStats().TotalConns > total })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOwner(t, server, test.name == "in the background")
			wantSoon(t, "there is a proof", o.store.Prove)
			test.connect(t, o)
			if o.store.IsProved() {
				t.Errorf("the proof holds for the new connection, after %d dials: %+v", o.dials.Load(), o.client.PoolStats())
			}
		})
	}
}

// If the proof ends before joined calls are sent, because the only connection for them is new, they
// are sent one by one.
func TestProofEndsBeforeCallsAreSent(t *testing.T) {
	server := redistest.Start(t)
	o := newOwner(t, server, false)
	o.proxy.change(toAll(server))
	// On a busy machine, both connections may be for calls that are sent directly.
	for attempt := 0; o.proxy.scripts().blank == 0; attempt++ {
		if attempt == 20 {
			t.Fatalf("%+v: no script was left blank", o.proxy.scripts())
		}
		o.useNewConnections(t, fmt.Sprint(t.Name(), attempt))
	}
}

// useNewConnections decides calls that were joined while the proof held, and for which connections
// are made then.
func (o *owner) useNewConnections(t *testing.T, name string) {
	joined := o.proxy.scripts().joined
	keepUsing(t, "scripts have the keys of several calls", o.store, func() bool { return o.proxy.scripts().joined > joined })
	release := o.holdDials()
	o.closeAll()
	before := o.dials.Load()
	m := mixOf(t, name, callers, 3)
	var using sync.WaitGroup
	using.Go(func() { m.use(t, o.store, 1, false) })
	// One is for a call that is sent directly. The other's pipeline relies on the proof.
	wantSoon(t, "two connections are being made", func() bool { return o.dials.Load() >= before+2 })
	release()
	using.Wait()
	m.wantExact(t, o.store)
}

// owner is the owner of a client, and uses the client beside a store.
type owner struct {
	client *redis.Client
	proxy  *keyProxy
	store  store
	held   []*redis.Conn
	dials  atomic.Int32
	mu     sync.Mutex
	conns  []net.Conn
	gate   chan struct{} // closed, unless dials are held
}

func newOwner(t *testing.T, server *redistest.Server, keepsOneIdle bool) *owner {
	o := &owner{proxy: startKeyProxy(t, toOne(server)), gate: make(chan struct{})}
	close(o.gate)
	o.client = o.proxy.client(t, func(options *redis.Options) {
		options.Dialer = o.dial
		if keepsOneIdle {
			options.MinIdleConns = 1
		}
	})
	o.get(t, o.client)
	o.store = newStore(t, o.client, patient)
	bounded.Cleanup(t, o.letGo)
	return o
}

func (o *owner) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	o.mu.Lock()
	gate := o.gate
	o.mu.Unlock()
	o.dials.Add(1)
	<-gate
	conn, err := new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, addr)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conns = append(o.conns, conn)
	return conn, err
}

// closeAll closes all connections on our side, so that none is used any more.
func (o *owner) closeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, conn := range o.conns {
		_ = conn.Close()
	}
	o.conns = nil
}

// holdDials makes dials wait until release is called.
func (o *owner) holdDials() (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gate := make(chan struct{})
	o.gate = gate
	return func() { close(gate) }
}

func (o *owner) get(t *testing.T, client redis.Cmdable) {
	t.Helper()
	if err := client.Get(t.Context(), "owner").Err(); err != redis.Nil {
		t.Error(err)
	}
}

// holdIdle takes all idle connections from the pool.
func (o *owner) holdIdle(t *testing.T) {
	t.Helper()
	for n := o.client.PoolStats().IdleConns; n > 0; n-- {
		conn := o.client.Conn()
		o.held = append(o.held, conn)
		o.get(t, conn)
	}
}

// letGo gives the connections back.
func (o *owner) letGo() {
	for _, conn := range o.held {
		_ = conn.Close()
	}
	o.held = nil
}
