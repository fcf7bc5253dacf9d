package rivals

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
)

// recorder keeps what a client writes to its connections. A script is thus measured exactly as the
// library sends it, even if the library changes.
type recorder struct {
	mu      sync.Mutex
	streams []*bytes.Buffer // one for each connection
}

// recordedConn is a connection of a recorder.
type recordedConn struct {
	net.Conn
	recorder *recorder
	stream   *bytes.Buffer
}

// Write implements net.Conn.
func (c recordedConn) Write(p []byte) (int, error) {
	c.recorder.mu.Lock()
	c.stream.Write(p)
	c.recorder.mu.Unlock()
	return c.Conn.Write(p)
}

func (r *recorder) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	r.mu.Lock()
	defer r.mu.Unlock()
	stream := new(bytes.Buffer)
	r.streams = append(r.streams, stream)
	return recordedConn{conn, r, stream}, err
}

// connections returns how many connections were made.
func (r *recorder) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.streams)
}

// scripts returns the script calls since the last time, but those that read our marks in the background.
func (r *recorder) scripts() (calls [][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, stream := range r.streams {
		for in := bufio.NewReader(stream); ; {
			command, err := readCommand(in)
			if err != nil {
				break
			}
			if strings.EqualFold(command[0], "evalsha") && !strings.Contains(command[3], ":{%marks}:") {
				calls = append(calls, command)
			}
		}
	}
	return calls
}

// readCommand reads an array of bulk strings.
func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readLength(in)
	command := make([]string, n)
	for i := range command {
		size, err := readLength(in)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		command[i] = string(text[:size])
	}
	return command, err
}

func readLength(in *bufio.Reader) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// settled is how long a limiter must have made no connection. Each new one makes this library test
// the server anew before it decides several keys in one script.
const settled = 200 * time.Millisecond

// Record returns the scripts that a rival on go-redis sends for calls. It first repeats before until
// the limiter has settled, and leaves out its scripts, because the first calls of a limiter may load
// scripts and test the server.
func (r Redis) Record(p Place, l Limit, before, calls func(harness.AllowFunc) error) ([][]string, error) {
	recorder := new(recorder)
	p.dial = recorder.dial
	limiter, err := r.Open(p, l)
	if err != nil {
		return nil, err
	}
	defer limiter.Close()
	for made, since := 0, time.Now(); time.Since(since) < settled; {
		if err := before(limiter.Allow); err != nil {
			return nil, err
		}
		if now := recorder.connections(); now != made {
			made, since = now, time.Now()
		}
	}
	recorder.scripts()
	err = calls(limiter.Allow)
	scripts := recorder.scripts()
	if err == nil && len(scripts) == 0 {
		err = fmt.Errorf("%s sent no script", r.Name)
	}
	return scripts, err
}
