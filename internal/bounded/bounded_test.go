package bounded

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
)

// failed is a test that records how it fails.
type failed struct {
	testing.TB
	with []string
}

func (f *failed) Errorf(format string, args ...any) {
	f.with = append(f.with, format)
	for _, arg := range args {
		if text, ok := arg.([]byte); ok {
			f.with = append(f.with, string(text))
		}
	}
}

func TestACleanupThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, release := &failed{TB: t}, make(chan struct{})
		defer close(release)
		run(own, func() { <-release }, limit)
		if len(own.with) != 2 || !strings.Contains(own.with[1], "TestACleanupThatHangs.func1.1") {
			t.Errorf("got %q, want a failure with the stack of the function", own.with)
		}
	})
}

func TestACleanupThatReturns(t *testing.T) {
	own, ran := &failed{TB: t}, false
	run(own, func() { ran = true }, limit)
	if !ran || own.with != nil {
		t.Errorf("ran %v, %q", ran, own.with)
	}
}

func TestWaitingForAProcess(t *testing.T) {
	c := exec.Command("true")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := Wait(c); err != nil {
		t.Error(err)
	}
}

// A proxy ends with its test, also if a client has left its connection open. Until then, a client
// that was cut can connect again.
func TestAProxyEnds(t *testing.T) {
	var clients []net.Conn
	t.Run("inner", func(t *testing.T) {
		server := Listen(t, func(_ *Listener, conn net.Conn) { _, _ = io.Copy(conn, conn) })
		proxy := Listen(t, func(l *Listener, conn net.Conn) { l.Forward(conn, conn, server.Addr()) })
		for range 2 {
			proxy.Cut()
			client, err := net.Dial("tcp", proxy.Addr())
			if err != nil {
				t.Fatal(err)
			}
			clients = append(clients, client)
			_, _ = io.WriteString(client, "a")
			if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, client := range clients {
		if n, err := client.Read(make([]byte, 1)); err == nil {
			t.Errorf("%d bytes from a proxy that has ended", n)
		}
		_ = client.Close()
	}
}
