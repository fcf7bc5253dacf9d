package limitertest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// OnBothEngines runs a test in process and on a real Redis, which is empty and which no other test
// uses meanwhile. A test that harms its server starts one of its own.
func OnBothEngines(t *testing.T, test func(t *testing.T, options core.Options)) {
	t.Run("memory", func(t *testing.T) { test(t, core.Options{Timeout: Patient}) })
	t.Run("redis", func(t *testing.T) { test(t, core.Options{Redis: lend(t, "redis"), Timeout: Patient}) })
}

// OnEveryDeployment runs a test in process, and on each deployment of Redis, as OnBothEngines does.
func OnEveryDeployment(t *testing.T, test func(t *testing.T, options core.Options)) {
	OnBothEngines(t, test)
	for _, name := range []string{"ring", "cluster"} {
		t.Run(name, func(t *testing.T) { test(t, core.Options{Redis: lend(t, name), Timeout: Patient}) })
	}
}

// deployment is a Redis that the tests of one binary use by turns: a cluster takes two seconds to
// start.
type deployment struct {
	servers []*redistest.Server
	connect func(t testing.TB) redis.UniversalClient
}

// lent has the deployments that no test uses now, by name, until the tests of the binary end.
var lent = struct {
	sync.Mutex
	idle map[string][]*deployment
}{idle: make(map[string][]*deployment)}

// lend returns a client of an empty deployment, which is the test's until it ends.
func lend(t *testing.T, name string) redis.UniversalClient {
	d := take(name)
	if d == nil {
		d = start(name)
	}
	bounded.Cleanup(t, func() { // after the limiters and the client are closed
		if err := d.clear(); err != nil {
			t.Errorf("a test that harms its server must start one of its own: %v", err)
			return
		}
		lent.Lock()
		defer lent.Unlock()
		lent.idle[name] = append(lent.idle[name], d)
	})
	return d.connect(t)
}

// take returns a deployment that is idle, or nil.
func take(name string) *deployment {
	lent.Lock()
	defer lent.Unlock()
	idle := lent.idle[name]
	if len(idle) == 0 {
		return nil
	}
	lent.idle[name] = idle[:len(idle)-1]
	return idle[len(idle)-1]
}

// start starts a deployment, which ends with the tests of the binary.
func start(name string) *deployment {
	switch t := new(binary); name {
	case "ring":
		ring := redistest.StartRing(t, 2)
		return &deployment{ring.Nodes(), func(t testing.TB) redis.UniversalClient { return ring.Client(t) }}
	case "cluster":
		cluster := redistest.StartCluster(t)
		return &deployment{cluster.Nodes(), func(t testing.TB) redis.UniversalClient { return cluster.Client(t) }}
	default:
		server := redistest.Start(t)
		return &deployment{[]*redistest.Server{server}, func(t testing.TB) redis.UniversalClient { return server.Client(t) }}
	}
}

// clear removes all keys and scripts.
func (d *deployment) clear() (err error) {
	for _, server := range d.servers {
		err = errors.Join(err, server.Clear())
	}
	return err
}

// binary stands for all tests of a test binary, which own its servers.
type binary struct{ testing.TB }

func (*binary) Helper() {}

func (*binary) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (*binary) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (*binary) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (*binary) Cleanup(end func()) { leakcheck.AtEnd(end) }

func (b *binary) TempDir() string {
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
