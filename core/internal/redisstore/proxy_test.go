package redisstore_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

// proxy forwards connections to any servers, and on demand loses the reply to one script call.
type proxy struct {
	t      testing.TB
	mu     sync.Mutex
	fronts map[string]string // by the address of a server, where the proxy listens in its place
	fault  atomic.Pointer[fault]
	lost   atomic.Int32 // replies so far
}

// fault is a way to lose a reply.
type fault struct {
	name  string
	cut   bool   // the connection is closed; otherwise it stays silent
	reply string // comes instead, if set
}

var faults = []*fault{{name: "swallowed"}, {name: "cut off", cut: true}}

func startProxy(t testing.TB) *proxy { return &proxy{t: t, fronts: make(map[string]string)} }

// dial is a go-redis Dialer.
func (p *proxy) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, p.front(addr))
}

// front returns the address at which the proxy listens in place of a server.
func (p *proxy) front(addr string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if front, ok := p.fronts[addr]; ok {
		return front
	}
	p.fronts[addr] = bounded.Listen(p.t, func(l *bounded.Listener, client net.Conn) { p.serve(l, client, addr) }).Addr()
	return p.fronts[addr]
}

// serve forwards one connection until either side ends it.
func (p *proxy) serve(l *bounded.Listener, client net.Conn, addr string) {
	server, err := l.Dial(client, addr)
	if err != nil {
		return
	}
	var called atomic.Bool // the last thing that the client sent was a script call
	go func() {
		pass(client, server, func(sent []byte) bool {
			called.Store(bytes.Contains(sent, []byte("evalsha")))
			return true
		})
		_ = server.Close()
	}()
	pass(server, client, func([]byte) bool {
		f := p.fault.Load()
		if f == nil || !called.Load() || !p.fault.CompareAndSwap(f, nil) {
			return true
		}
		p.lost.Add(1)
		if f.cut {
			_ = client.Close()
		}
		_, _ = io.WriteString(client, f.reply)
		return false
	})
}

// pass copies what is sent, unless keep returns false.
func pass(from io.Reader, to io.Writer, keep func(sent []byte) bool) {
	sent := make([]byte, 64<<10)
	for {
		n, err := from.Read(sent)
		if n > 0 && keep(sent[:n]) {
			if _, err := to.Write(sent[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readValue reads one command or reply, and returns it as it was sent.
func readValue(r *bufio.Reader) (raw []byte, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		rest := make([]byte, n+2)
		_, err = io.ReadFull(r, rest)
		return append(line, rest...), err
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for range n {
			value, err := readValue(r)
			if err != nil {
				return nil, err
			}
			line = append(line, value...)
		}
	}
	return line, nil
}

// words returns the words of a command.
func words(raw []byte) (words []string) {
	if raw[0] != '*' { // an inline command, which ends with the line
		return append(strings.Fields(string(raw)), "")
	}
	r := bufio.NewReader(strings.NewReader(string(raw)))
	_, _ = r.ReadString('\n')
	for {
		length, err := r.ReadString('\n')
		if err != nil {
			return words
		}
		n, _ := strconv.Atoi(strings.TrimSpace(length[1:]))
		word := make([]byte, n+2)
		_, _ = io.ReadFull(r, word)
		words = append(words, string(word[:n]))
	}
}
