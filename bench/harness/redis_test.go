package harness

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestUsageIn(t *testing.T) {
	info := "# CPU\r\nused_cpu_sys:9.0\r\nused_cpu_user:9.0\r\nused_cpu_sys_main_thread:1.25\r\nused_cpu_user_main_thread:2.5\r\n" +
		"# Commandstats\r\ncmdstat_evalsha:calls=7,usec=9\r\ncmdstat_get:calls=100,usec=9\r\ncmdstat_eval:calls=2,usec=9\r\n"
	want := Usage{CPU: 3750 * time.Millisecond, Scripts: 9, ScriptTime: 18 * time.Microsecond}
	if got := usageIn(info); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestSkipReply(t *testing.T) {
	in := bufio.NewReader(strings.NewReader(":1\r\n+OK\r\n$-1\r\n$3\r\na\r\n\r\n*2\r\n:1\r\n*1\r\n$1\r\nx\r\n-ERR no\r\n:2\r\n"))
	for i := range 5 {
		if err := skipReply(in); err != nil {
			t.Fatalf("reply %d: %v", i, err)
		}
	}
	if err := skipReply(in); err == nil || !strings.Contains(err.Error(), "ERR no") {
		t.Errorf("an error is read as %v", err)
	}
	if err := skipReply(in); err != nil {
		t.Errorf("after an error: %v", err)
	}
}

// Scripts are replayed on a real server, which counts each of them.
func TestReplay(t *testing.T) {
	server, err := StartServer()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	sha := server.Client.ScriptLoad(t.Context(), "return redis.call('INCR', KEYS[1])").Val()
	o, err := server.Replay(3, [][]byte{Encode([]string{"evalsha", sha, "1", "k"})}, 1000, 2, 64)
	if err != nil {
		t.Fatal(err)
	}
	third := redis.NewClient(&redis.Options{Addr: server.Addr, DB: 3})
	defer third.Close()
	if n := third.Get(t.Context(), "k").Val(); n != "1000" || o.Server.Scripts != 1000 || o.Server.CPU <= 0 {
		t.Errorf("the key is at %s, and the server spent %+v", n, o.Server)
	}
}

func TestCluster(t *testing.T) {
	cluster, err := StartCluster(3, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{cluster.Addr}})
	defer client.Close()
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := client.Eval(t.Context(), "return redis.call('INCR', KEYS[1])", []string{key}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := cluster.Usage(); err != nil || u.Scripts != 4 {
		t.Errorf("all masters together: %+v, %v", u, err)
	}
}
