package doctor

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"

	"github.com/redis/go-redis/v9"
)

func (e *exam) isCluster() bool { _, is := e.Client.(*redis.ClusterClient); return is }

func (e *exam) isRing() bool { _, is := e.Client.(*redis.Ring); return is }

// encryption looks whether others can listen.
func (e *exam) encryption(_ context.Context, s *server) {
	config, known := tlsOf(s.node)
	switch {
	case !known:
	case config != nil && config.InsecureSkipVerify:
		e.add(Warning, "tls", s, "the connection is encrypted, but the certificate is not checked: anybody on the way can pose as Redis", "remove InsecureSkipVerify, or skip_verify in a URL, and set RootCAs")
	case config != nil:
		e.add(OK, "tls", s, "the connection is encrypted, and the certificate is checked", "")
	case isLocal(s.addr):
		e.add(OK, "tls", s, "the connection does not leave this machine", "")
	default:
		e.add(Warning, "tls", s, "the connection is not encrypted: subjects and the password can be read on the way", "set TLSConfig in the client's options; in a URL, write rediss://")
	}
}

// tlsOf returns the configuration of TLS of a client.
func tlsOf(node commander) (config *tls.Config, known bool) {
	client, ok := node.(*redis.Client)
	if !ok {
		return nil, false
	}
	return client.Options().TLSConfig, true
}

// isLocal reports whether an address is one of this machine. A path is that of a unix socket.
func isLocal(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// user looks whether the library has a user of its own.
func (e *exam) user(ctx context.Context, s *server) {
	name, err := e.askText(ctx, s.node, "acl", "whoami")
	if err != nil {
		return // a user without this right is one with few rights
	}
	if name == "default" {
		e.add(Note, "user", s, "the Redis user is default, who may do everything", "give the library a user with only the rights that core/REDIS.md lists")
		return
	}
	e.add(OK, "user", s, "the Redis user is "+name, "")
}
