package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// driver is a driver that runs, with a Redis of its own.
type driver struct {
	folder         string
	redis, program *exec.Cmd
	requests       io.WriteCloser
	replies        chan []string
	broken         error // why there are no more replies, once the channel is closed
	printed        strings.Builder
}

// start starts a driver.
func start(program string) (d *driver, err error) {
	d = &driver{replies: make(chan []string, ahead)}
	if d.folder, err = os.MkdirTemp("", "agree"); err != nil {
		return nil, err
	}
	socket := filepath.Join(d.folder, "redis")
	d.redis = exec.Command(cmp.Or(os.Getenv("ACCESSLIMIT_REDIS_SERVER"), "redis-server"),
		"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", d.folder)
	d.program = exec.Command(program, "-test.timeout=0")
	// One thing happens after the other, so more processors would only wait for each other.
	d.program.Env = append(os.Environ(), "ACCESSLIMIT_AGREE_REDIS="+socket, "GOMAXPROCS=1", "GOGC=400")
	d.program.Stderr = &d.printed
	if d.requests, err = d.program.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.program.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.redis.Start(), awaitFile(socket), d.program.Start()); err != nil {
		d.close()
		return nil, err
	}
	go d.read(out)
	return d, nil
}

// awaitFile waits until a server has made its socket.
func awaitFile(name string) error {
	for range 600 {
		if _, err := os.Stat(name); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("redis-server has not made %s in a minute", name)
}

// read reads replies, each of lines and then an empty one.
func (d *driver) read(out io.Reader) {
	defer close(d.replies)
	lines, reply := bufio.NewScanner(out), []string(nil)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		if lines.Text() != "" {
			reply = append(reply, lines.Text())
			continue
		}
		d.replies <- reply
		reply = nil
	}
	d.broken = fmt.Errorf("the driver has ended: %w\n%s", errors.Join(lines.Err(), d.program.Wait()), strings.Join(reply, "\n"))
}

func (d *driver) ask(request string) { _, _ = io.WriteString(d.requests, request) }

func (d *driver) reply() ([]string, error) {
	select {
	case reply, ok := <-d.replies:
		if !ok {
			return nil, fmt.Errorf("%w\n%s", d.broken, d.printed.String())
		}
		return reply, nil
	case <-time.After(5 * time.Minute):
		return nil, errors.New("the driver has not replied for five minutes")
	}
}

func (d *driver) close() {
	for _, p := range []*exec.Cmd{d.program, d.redis} {
		if p.Process != nil {
			_ = p.Process.Kill()
		}
	}
	if d.redis.Process != nil {
		_ = d.redis.Wait()
	}
	_ = os.RemoveAll(d.folder)
}
