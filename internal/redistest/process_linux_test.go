package redistest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// childVariable tells TestServerEndsWithAKilledTestBinary that it is the test binary to be killed.
const childVariable = "ACCESSLIMIT_TEST_CHILD"

func TestServerEndsWithAKilledTestBinary(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		fmt.Println(redistest.Start(t).Addr())
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=false")
	child.Env = append(os.Environ(), childVariable+"=1", "TMPDIR="+t.TempDir()) // it cannot tidy up itself
	output, err := child.StdoutPipe()
	input, err2 := child.StdinPipe()
	if err := errors.Join(err, err2, child.Start()); err != nil {
		t.Fatalf("the test binary cannot be started: %v", err)
	}
	defer func() { _ = input.Close() }()
	line := bufio.NewScanner(output)
	line.Scan()
	server := redis.NewClient(&redis.Options{Addr: line.Text(), MaxRetries: -1})
	defer func() { _ = server.Close() }()
	wantPong := server.Ping(context.Background()).Err()
	_ = child.Process.Kill()
	_ = bounded.Wait(child)
	if wantPong != nil {
		t.Fatalf("the server at %q: %v", line.Text(), wantPong)
	}
	if !redistest.WaitUntil(func() bool { return server.Ping(context.Background()).Err() != nil }, time.Minute) {
		t.Fatal("the server outlived the test binary that started it")
	}
}
