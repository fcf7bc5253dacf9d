package harness

import (
	"bufio"
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestReadInfo(t *testing.T) {
	info := "# CPU\r\nused_cpu_sys:9.0\r\nused_cpu_user:9.0\r\nused_cpu_sys_main_thread:1.25\r\nused_cpu_user_main_thread:2.5\r\n" +
		"# Commandstats\r\ncmdstat_evalsha:calls=7,usec=9\r\ncmdstat_get:calls=100,usec=9\r\ncmdstat_eval:calls=2,usec=9\r\n"
	if got := mainThread(info); got != 3750*time.Millisecond {
		t.Errorf("the main thread took %v", got)
	}
	if got := mainThread("used_cpu_sys:1\r\nused_cpu_user:2\r\n"); got != 3*time.Second {
		t.Errorf("an older server took %v", got)
	}
	if got := scriptCalls(info); got != 9 {
		t.Errorf("%d scripts were called", got)
	}
}

func TestCommandsAreReadAsTheyAreWritten(t *testing.T) {
	command := []string{"evalsha", "", "a\r\nb", "\x00\xff"}
	got, err := readCommand(bufio.NewReader(strings.NewReader(string(Encode(command)))))
	if err != nil || !reflect.DeepEqual(got, command) {
		t.Errorf("%q, %v", got, err)
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

// A script is recorded through the proxy and replayed on a real server, which counts each call.
func TestRecordAndReplay(t *testing.T) {
	server, err := StartServer()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	recorder, err := NewRecorder(server.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	client := redis.NewClient(&redis.Options{Addr: recorder.Addr()})
	defer client.Close()
	ctx, script := context.Background(), redis.NewScript("return redis.call('INCR', KEYS[1])")
	if err := script.Load(ctx, client).Err(); err != nil {
		t.Fatal(err)
	}
	calls, err := recorder.Record(func() error { return script.EvalSha(ctx, client, []string{"k"}).Err() })
	if err != nil || len(calls) != 1 || calls[0][3] != "k" {
		t.Fatalf("recorded %q, %v", calls, err)
	}
	before, err := server.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Replay(server.Addrs()[0], 3, [][]byte{Encode(calls[0])}, 1000, 2, 64); err != nil {
		t.Fatal(err)
	}
	after, err := server.Usage()
	if err != nil {
		t.Fatal(err)
	}
	third := server.DB(3)
	defer third.Close()
	if n := third.Get(ctx, "k").Val(); n != "1000" || after.Scripts-before.Scripts != 1000 || after.CPU <= before.CPU {
		t.Errorf("the key is at %s after %d scripts in %v", n, after.Scripts-before.Scripts, after.CPU-before.CPU)
	}
}
