package setups_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// The same in a cluster, also while a slot moves.
func TestTheACLLineInACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	acl := readACL(t)
	line, more := acl.everybody, acl.cluster
	user, password := userOf(line)
	connect := func() redis.UniversalClient {
		return cluster.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = user, password })
	}
	var admins []*redis.Client
	for _, node := range cluster.Nodes() {
		admins = append(admins, node.Client(t))
	}
	allow := func(less string) {
		for _, admin := range admins {
			permit(t, admin, less, line, more)
		}
	}
	finder := cluster.Client(t)
	states := states{at: func(key string) *redis.Client {
		node, err := finder.MasterForKey(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		return node
	}}
	allow("")
	for _, err := range useEverything(t, connect(), states, "") {
		t.Errorf("with the rights of %q, %q: %v", line, more, err)
	}
	subject := cluster.Moving(t)
	ask := func() error {
		_, err := newLimiter(t, core.Options{Redis: connect(), Timeout: patient}).MustCounter("name", core.PerHour(100)).Allow(background, subject)
		return err
	}
	if err := ask(); err != nil {
		t.Errorf("while the slot moves: %v", err)
	}
	if got := denied(t, admins...); slices.ContainsFunc(got, func(command string) bool { return command != "info" }) {
		t.Errorf("with the rights of %q, %q the servers refused %q", line, more, got)
	}
	for _, right := range rights(more) {
		allow(right)
		if err := ask(); !isRefused(err) {
			t.Errorf("without %s: %v, want a refusal by Redis", right, err)
		}
		command, _, _ := strings.Cut(right, "|") // which is all that Redis 6.2 logs
		if got := denied(t, admins...); !slices.Contains(got, right) && !slices.Contains(got, command) {
			t.Errorf("without %s the servers refused %q", right, got)
		}
	}
}

// The same with a ring, whose client sends PING to each server and regards those that refuse it as
// dead.
func TestTheACLLineInARing(t *testing.T) {
	ring := redistest.StartRing(t, 2)
	acl := readACL(t)
	line, more := acl.everybody, acl.ring
	user, password := userOf(line)
	for _, less := range append(rights(more), "") {
		for _, node := range ring.Nodes() {
			permit(t, node.Client(t), less, line, more)
		}
		pings := func() (pings int) {
			for _, node := range ring.Nodes() {
				pings += node.Calls("ping")
			}
			return pings
		}
		before := pings()
		client := ring.Client(t, func(o *redis.RingOptions) {
			o.Username, o.Password, o.HeartbeatFrequency = user, password, 20*time.Millisecond
		})
		redistest.WaitUntil(func() bool { return client.Len() < 2 || less == "" && pings() > before+10 }, patient)
		if alive := client.Len(); (alive == 2) != (less == "") {
			t.Errorf("without %q the client thinks that %d of 2 servers live", less, alive)
		}
	}
	if _, err := newLimiter(t, core.Options{Redis: ring.Client(t, func(o *redis.RingOptions) { o.Username, o.Password = user, password }), Timeout: patient}).MustCounter(
		"name", core.PerHour(5)).Allow(
		background, "subject"); err != nil {
		t.Error(err)
	}
}
