package operate_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/losses"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// examined returns what Doctor finds about a Redis.
func examined(t *testing.T, client redis.UniversalClient, timeout time.Duration) []operate.Finding {
	t.Helper()
	found, err := operate.New(newLimiter(t, core.Options{Redis: client, Timeout: timeout})).Doctor(background)
	if err != nil || len(found) == 0 {
		t.Fatalf("%v, %v", found, err)
	}
	return found
}

// wantFindings checks the findings that are not ok: each wanted one is a level, a code and a part of the
// text or of the advice. How long trips and decisions take, and so what is known of clocks, depends on the
// machine.
func wantFindings(t *testing.T, found []operate.Finding, wants ...string) {
	t.Helper()
	wants = slices.Clone(wants)
	for _, f := range found {
		if f.Code == "latency" || f.Code == "clock" || f.Code == "decisions" && f.Level == "warning" {
			continue
		}
		is := func(want string) bool {
			level, rest, _ := strings.Cut(want, " ")
			code, text, _ := strings.Cut(rest, " ")
			return f.Level == level && f.Code == code && strings.Contains(f.Text+" "+f.Do, text)
		}
		if at := slices.IndexFunc(wants, is); at >= 0 {
			wants = slices.Delete(wants, at, at+1)
		} else if f.Level != "ok" {
			t.Errorf("found %+v", f)
		}
		if (f.Level == "problem" || f.Level == "warning") && f.Do == "" {
			t.Errorf("nothing to do about %+v", f)
		}
	}
	if len(wants) > 0 {
		t.Errorf("not found: %q, in %+v", wants, found)
	}
}

// notes are the findings about the servers that tests start: those keep nothing on disk.
var notes = []string{"warning persistence nothing is saved", "note memory", "note replicas no replica", "note user default"}

// without returns notes without those about some codes.
func without(codes ...string) []string {
	return slices.DeleteFunc(slices.Clone(notes), func(note string) bool { return slices.Contains(codes, strings.Fields(note)[1]) })
}

func TestDoctorOfAServer(t *testing.T) {
	saving := []string{"--save", "60 1000", "--dir", t.TempDir(), "--maxmemory", "200mb"}
	for name, test := range map[string]struct {
		args   []string
		before func(*testing.T, *redis.Client) error
		wants  []string
	}{
		"as tests start it": {nil, nil, notes},
		"saving":            {saving, nil, without("persistence", "memory")},
		"logging":           {[]string{"--appendonly", "yes", "--dir", t.TempDir()}, nil, without("persistence")},
		"evicting":          {[]string{"--maxmemory", "200mb", "--maxmemory-policy", "allkeys-lru"}, nil, append(without("memory"), "problem eviction CONFIG SET maxmemory-policy noeviction")},
		"perhaps evicting":  {[]string{"--maxmemory-policy", "allkeys-lru"}, nil, append(without(), "note eviction once maxmemory is set")},
		"foreign keys": {nil, func(_ *testing.T, c *redis.Client) error {
			return c.MSet(background, "accesslimit:cache", "x", "accesslimit:{user:alice}:Session", "y", "other", "z").Err()
		}, append(without(), "warning writers 2 of ")},
		"a replica": {nil, func(t *testing.T, c *redis.Client) error {
			host, port, _ := net.SplitHostPort(redistest.Start(t, "--repl-diskless-sync-delay", "0").Addr()) // otherwise a replica waits five seconds
			err := c.Do(background, "replicaof", host, port).Err()
			eventually(t, "connected", func() bool { return strings.Contains(c.Info(background, "replication").Val(), "master_link_status:up") })
			return err
		}, append(without("replicas"), "problem client is a replica", "problem decisions")},
	} {
		t.Run(name, func(t *testing.T) {
			client := redistest.Start(t, test.args...).Client(t)
			if test.before != nil {
				if err := test.before(t, client); err != nil {
					t.Fatal(err)
				}
			}
			wantFindings(t, examined(t, client, patient), test.wants...)
			if left := client.Keys(background, "*doctor*").Val(); len(left) > 0 {
				t.Errorf("the counters %q stay", left)
			}
		})
	}
}

// A server that is nearly full is found before it refuses to count.
func TestDoctorOfAFullServer(t *testing.T) {
	client := redistest.Start(t).Client(t)
	for _, name := range strings.Fields("a b c d e f g h") {
		if err := client.Set(background, name, strings.Repeat("x", 1<<20), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// Less than is used: what is used now may soon be a little less.
	if err := client.ConfigSet(background, "maxmemory", "8mb").Err(); err != nil {
		t.Fatal(err)
	}
	wantFindings(t, examined(t, client, patient), append(without("memory"), "problem memory refuses to count", "note decisions memory is short")...)
}

// A server that is nearly full, and evicts, keeps all that it has: nothing is written there.
func TestDoctorDoesNotEvict(t *testing.T) {
	client := redistest.Start(t).Client(t)
	if err := client.SetRange(background, "large", 16<<20, "x").Err(); err != nil { // its buffers for SET would be as large
		t.Fatal(err)
	}
	used := regexp.MustCompile(`used_memory:(\d+)`).FindStringSubmatch(client.Info(background, "memory").Val())[1]
	bytes, _ := strconv.Atoi(used)
	if err := errors.Join(client.ConfigSet(background, "maxmemory", strconv.Itoa(bytes+1<<20)).Err(), client.ConfigSet(background, "maxmemory-policy", "allkeys-lru").Err()); err != nil {
		t.Fatal(err)
	}
	wantFindings(t, examined(t, client, patient), append(without("memory"), "warning memory OnStoreError decides", "problem eviction noeviction", "note decisions memory is short")...)
	if keys := client.Keys(background, "*").Val(); !slices.Equal(keys, []string{"large"}) {
		t.Errorf("now the keys are %q", keys)
	}
}

// A loss of data in the last day is a problem, and so is a document that cannot be read.
func TestDoctorOfLosses(t *testing.T) {
	client := redistest.Start(t).Client(t)
	if err := client.Set(background, "accesslimit:{%rules}:rd1", "garbage", 0).Err(); err != nil {
		t.Fatal(err)
	}
	store := redisstore.New(client, patient)
	bounded.Cleanup(t, store.Close)
	list := losses.New(store, "accesslimit")
	for _, l := range []redisstore.Loss{{ID: "a", Addr: "10.0.0.1:6379", Lost: "everything", How: "FLUSHALL"}, {ID: "a", Addr: "10.0.0.1:6379", Lost: "everything"}, {ID: "b", Addr: "10.0.0.2:6379", Lost: "the latest writes"}} {
		if err := list.Record(background, l); err != nil {
			t.Fatal(err)
		}
	}
	wantFindings(t, examined(t, client, patient), append(without(), "problem document remove the key, and publish", "problem losses everything: FLUSHALL", "problem losses the latest writes")...)
}

func TestDoctorOfAServerThatDoesNotAnswer(t *testing.T) {
	for name, fail := range map[string]func(*redistest.Server){"stopped": (*redistest.Server).Stop, "killed": (*redistest.Server).Kill} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			client := server.Client(t, func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 })
			fail(server)
			wantFindings(t, examined(t, client, time.Second), "problem connection there is no answer")
		})
	}
	wantFindings(t, examined(t, redistest.Start(t, "--requirepass", "secret").Client(t), patient), "problem connection set Username and Password")
	found, err := operate.New(newLimiter(t, core.Options{})).Doctor(background)
	if err != nil || len(found) != 1 || found[0].Level != "note" {
		t.Errorf("without Redis: %v, %v", found, err)
	}
}

// Doctor returns when its context ends, or after Timeout, even if the client waits for ever.
func TestDoctorOfASilentServer(t *testing.T) {
	for name, start := range map[string]func() ([]*redistest.Server, redis.UniversalClient){
		"one server": func() ([]*redistest.Server, redis.UniversalClient) {
			server := redistest.Start(t)
			return []*redistest.Server{server}, server.Client(t, func(o *redis.Options) { o.ReadTimeout = -1 })
		},
		"cluster": func() ([]*redistest.Server, redis.UniversalClient) {
			cluster := redistest.StartCluster(t)
			return cluster.Nodes(), cluster.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = -1 })
		},
		"ring": func() ([]*redistest.Server, redis.UniversalClient) {
			ring := redistest.StartRing(t, 2)
			return ring.Nodes(), ring.Client(t, func(o *redis.RingOptions) {
				o.ReadTimeout, o.HeartbeatFrequency = -1, time.Hour // so that it does not know yet that they are down
			})
		},
		"unknown": func() ([]*redistest.Server, redis.UniversalClient) {
			server := redistest.Start(t)
			return []*redistest.Server{server}, struct{ redis.UniversalClient }{server.Client(t, func(o *redis.Options) { o.ReadTimeout = -1 })}
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers, client := start()
			for _, server := range servers {
				server.Stop()
			}
			examine := func(ctx context.Context, timeout time.Duration) error {
				found, err := operate.New(newLimiter(t, core.Options{Redis: client, Timeout: timeout})).Doctor(ctx)
				for _, f := range found {
					if f.Level != "problem" || f.Code != "connection" {
						t.Errorf("found %+v", f)
					}
				}
				return err
			}
			if err := examine(background, 100*time.Millisecond); err != nil {
				t.Error(err)
			}
			soon, cancel := context.WithTimeout(background, 100*time.Millisecond)
			defer cancel()
			if err := examine(soon, patient); err != context.DeadlineExceeded {
				t.Errorf("%v, want the context's error", err)
			}
		})
	}
}

// A ring's client no longer asks servers that it knows to be down. Doctor finds them all the same.
func TestDoctorOfARingThatIsDown(t *testing.T) {
	servers := redistest.StartRing(t, 2)
	ring := servers.Client(t, func(o *redis.RingOptions) { o.HeartbeatFrequency = 10 * time.Millisecond })
	for _, server := range servers.Nodes() {
		server.Kill()
	}
	eventually(t, "the ring knows", func() bool { return ring.Len() == 0 })
	wantFindings(t, examined(t, ring, patient), "problem connection of 2 servers of the ring, 0 answer")
}

// Exactly the rights that are missing are found, of all that core/REDIS.md lists for services, and
// nothing stays behind.
func TestDoctorOfRights(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	page, err := os.ReadFile("../REDIS.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`~accesslimit:\* \+del .*`).FindString(string(page))
	rights := append(strings.Fields(line)[1:], "+info", "+xrevrange", "+getrange")
	if len(rights) < 25 {
		t.Fatalf("the rights are %q", rights)
	}
	client := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "limits", "p" })
	for _, less := range append(rights, "+nothing", "~") {
		keys := "~accesslimit:*"
		if less == "~" {
			keys = "~other:*"
		}
		line := []any{"acl", "setuser", "limits", "reset", "on", ">p", keys, "+ping"}
		for _, right := range rights {
			if right != less {
				line = append(line, right)
			}
		}
		if err := admin.Do(background, line...).Err(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range examined(t, client, patient) {
			if f.Code == "rights" && f.Level != "ok" {
				got = append(got, f.Do)
			}
		}
		want := []string{"ACL SETUSER USER " + less}
		switch less {
		case "+nothing":
			want = nil
		case "~":
			want = []string{"ACL SETUSER USER ~accesslimit:*"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("without %s: %q, want %q", less, got, want)
		}
	}
	for _, key := range admin.Keys(background, "*probe").Val() {
		if admin.PTTL(background, key).Val() == -1 { // it is -2 if the key has just expired
			t.Errorf("%s never expires", key)
		}
	}
}

func TestDoctorOfDeployments(t *testing.T) {
	cluster := redistest.StartCluster(t)
	each := func(n int, notes ...string) (all []string) {
		for range n {
			all = append(all, notes...)
		}
		return all
	}
	n := len(cluster.Nodes())
	wantFindings(t, examined(t, cluster.Client(t), patient), each(n, notes...)...)
	wantFindings(t, examined(t, cluster.Nodes()[0].Client(t), patient), append(without(), "problem client redis.NewClusterClient", "problem decisions MOVED", "note losses MOVED")...)
	cluster.AddReplicas(t)
	r := len(cluster.Replicas()) // each of another master
	for _, node := range cluster.Nodes() {
		client := node.Client(t)
		eventually(t, "each master has a replica", func() bool {
			slots, err := client.Do(background, "cluster", "slots").Slice()
			return err == nil && !slices.ContainsFunc(slots, func(s any) bool { return len(s.([]any)) < 4 }) // the first and the last slot, and two nodes
		})
	}
	wants := append(each(n+r, without("replicas")...), each(n-r, "note replicas no replica")...)
	wantFindings(t, examined(t, cluster.Client(t), patient), wants...)
	wantFindings(t, examined(t, redistest.StartRing(t, 2).Client(t), patient), each(2, notes...)...)
	wantFindings(t, examined(t, redistest.StartSentinel(t).Client(t), patient), without("replicas")...)
}

// A cluster without all slots, or without a master, is one in which some subjects are not limited.
func TestDoctorOfABrokenCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	slots := []any{"cluster", "delslots"}
	for slot := range 5000 {
		slots = append(slots, slot)
	}
	for _, node := range cluster.Nodes() {
		if err := node.Client(t).Do(background, slots...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	has := func(found []operate.Finding, code, do string) bool {
		return slices.ContainsFunc(found, func(f operate.Finding) bool {
			return f.Level == "problem" && f.Code == code && strings.Contains(f.Do, do)
		})
	}
	if found := examined(t, cluster.Client(t), patient); !has(found, "cluster", "redis-cli --cluster check") || !has(found, "decisions", "") {
		t.Errorf("without slots: %+v", found)
	}
	cluster.Nodes()[1].Kill()
	client := cluster.Client(t, func(o *redis.ClusterOptions) { o.MaxRetries, o.DialerRetries = -1, 1 })
	if found := examined(t, client, patient); !has(found, "connection", "start Redis") {
		t.Errorf("without a master: %+v", found)
	}
}

// Connections through a proxy that end at several servers count apart, which is found.
func TestDoctorOfProxies(t *testing.T) {
	a, b := redistest.Start(t), redistest.Start(t)
	open := func(addr string) *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: addr})
		bounded.Cleanup(t, func() { client.Close() })
		return client
	}
	wantFindings(t, examined(t, open(redistest.Forward(t, a)), patient), append(without(), "note proxy a mapping of ports")...)
	wantFindings(t, examined(t, open(redistest.Forward(t, a, b)), patient), append(without(), "problem proxy each of them has counters of its own")...)
}

// A finding has a code that Finding lists.
func TestCodesOfFindings(t *testing.T) {
	source, err := os.ReadFile("doctor.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := make(map[string]bool)
	for _, f := range examined(t, redistest.StartCluster(t).Client(t), patient) {
		codes[f.Code] = true
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if !strings.Contains(string(source), code) {
			t.Errorf("%s is not listed", code)
		}
	}
}
