package redistest_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// childVariable tells TestServerEndsWithAKilledTestBinary that it is the test binary to be killed.
const childVariable = "ACCESSLIMIT_TEST_CHILD"

func TestServerEndsWithAKilledTestBinary(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		fmt.Println(redistest.Start(t).Addr())
		time.Sleep(time.Minute)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=false")
	child.Env = append(os.Environ(), childVariable+"=1", "TMPDIR="+t.TempDir()) // it cannot tidy up itself
	output, err := child.StdoutPipe()
	if err != nil || child.Start() != nil {
		t.Fatalf("the test binary cannot be started: %v", err)
	}
	line := bufio.NewScanner(output)
	line.Scan()
	server := redis.NewClient(&redis.Options{Addr: line.Text(), MaxRetries: -1})
	defer func() { _ = server.Close() }()
	wantPong := server.Ping(context.Background()).Err()
	_ = child.Process.Kill()
	_ = child.Wait()
	if wantPong != nil {
		t.Fatalf("the server at %q: %v", line.Text(), wantPong)
	}
	for deadline := time.Now().Add(5 * time.Second); server.Ping(context.Background()).Err() == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the server outlived the test binary that started it")
		}
	}
}
