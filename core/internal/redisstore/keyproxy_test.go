package redisstore_test

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// keyProxy is a proxy that reads each command, and sends it whole to the server of its first key,
// as Twemproxy does, if its hash_tag is set. It records which scripts have the keys of several calls.
type keyProxy struct {
	t        testing.TB
	listener *bounded.Listener

	mu    sync.Mutex
	route route // of new connections
	sent  sent  // on the connections since the route was set
}

// sent counts scripts by their keys.
type sent struct {
	joined   int // scripts with the keys of several calls
	unproved int // joined scripts before any script has read probe keys
	probes   int // scripts with probe keys
}

// route returns the server for a command with these keys, or an error reply.
type route func(keys []string) (server, refusal string)

// hangUp stands for an error reply, but ends the connection, as Twemproxy does if a script has no
// key.
const hangUp = "hang up"

// tlsHandshake begins what the store sends to learn whether a silent server speaks TLS. Redis takes
// it for the beginning of a command, and waits for the rest.
const tlsHandshake = 0x16

// toOne sends everything to one server.
func toOne(server *redistest.Server) route {
	return func([]string) (string, string) { return server.Addr(), "" }
}

// toAll spreads the keys over servers, by their hash tags. Commands that never have a key are
// refused.
func toAll(servers ...*redistest.Server) route {
	return spread(func(key string) string { return tagsOf([]string{key})[0] }, servers)
}

// spread spreads the keys over servers by a part of each.
func spread(by func(key string) string, servers []*redistest.Server) route {
	return func(keys []string) (string, string) {
		switch {
		case keys == nil:
			return "", "ERR unsupported command"
		case len(keys) == 0:
			return "", hangUp
		}
		return servers[hashOf(by(keys[0]))%uint32(len(servers))].Addr(), ""
	}
}

func hashOf(key string) uint32 {
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, key)
	return hash.Sum32()
}

// untagged spreads the keys over servers by the whole key, as Twemproxy does without hash_tag.
func untagged(servers ...*redistest.Server) route {
	return spread(func(key string) string { return key }, servers)
}

// slotwise refuses commands with keys of several slots.
func slotwise(next route) route {
	return func(keys []string) (string, string) {
		if len(tagsOf(keys)) > 1 {
			return "", "CROSSSLOT Keys in request don't hash to the same slot"
		}
		return next(keys)
	}
}

// tagsOf returns the different hash tags of keys.
func tagsOf(keys []string) (tags []string) {
	for _, key := range keys {
		_, tag, _ := strings.Cut(key, "{")
		tag, _, _ = strings.Cut(tag, "}")
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

func startKeyProxy(t testing.TB, r route) *keyProxy {
	t.Helper()
	p := &keyProxy{t: t, route: r}
	p.listener = bounded.Listen(t, p.serve)
	return p
}

func (p *keyProxy) addr() string { return p.listener.Addr() }

// client returns a client of the proxy.
func (p *keyProxy) client(t testing.TB, change ...func(*redis.Options)) *redis.Client {
	options := &redis.Options{Addr: p.addr()}
	for _, apply := range change {
		if apply != nil {
			apply(options)
		}
	}
	client := redis.NewClient(options)
	bounded.Cleanup(t, func() { _ = client.Close() })
	return client
}

// change cuts all connections. New connections have this route.
func (p *keyProxy) change(r route) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener.Cut()
	p.route, p.sent = r, sent{}
}

// scripts returns the counts of scripts sent since the last change.
func (p *keyProxy) scripts() sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// joins reports whether any script sent since the last change had the keys of several calls.
func (p *keyProxy) joins() bool { return p.scripts().joined > 0 }

// serve answers the commands of one connection, one after the other.
func (p *keyProxy) serve(l *bounded.Listener, conn net.Conn) {
	p.mu.Lock()
	r := p.route
	p.mu.Unlock()
	servers := make(map[string]*bufio.ReadWriter)
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	for {
		raw, err := readValue(in)
		if err != nil || raw[0] == tlsHandshake {
			return
		}
		keys := p.note(l, conn, words(raw))
		addr, refusal := r(keys)
		switch {
		case refusal == hangUp:
			return
		case refusal != "":
			_, _ = fmt.Fprintf(out, "-%s\r\n", refusal)
		default:
			server := servers[addr]
			if server == nil {
				to, err := l.Dial(conn, addr)
				if err != nil {
					return
				}
				server = bufio.NewReadWriter(bufio.NewReader(to), bufio.NewWriter(to))
				servers[addr] = server
			}
			_, _ = server.Write(raw)
			_ = server.Flush()
			reply, err := readValue(server.Reader)
			if err != nil {
				return
			}
			_, _ = out.Write(reply)
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

// note records a command, and returns its keys.
func (p *keyProxy) note(l *bounded.Listener, conn net.Conn, command []string) (keys []string) {
	switch name := strings.ToLower(command[0]); {
	case strings.HasPrefix(name, "eval"):
		n, _ := strconv.Atoi(command[2])
		keys = command[3 : 3+n]
	case slices.Contains([]string{"get", "set", "del"}, name):
		return command[1:2]
	default:
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !l.IsOpen(conn): // it was cut
	case len(keys) > 0 && strings.Contains(keys[0], "}:probe"):
		p.sent.probes++
	case len(tagsOf(keys)) > 1:
		p.sent.joined++
		if p.sent.probes == 0 {
			p.sent.unproved++
		}
	}
	return keys
}
