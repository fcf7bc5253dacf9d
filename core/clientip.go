package core

import "github.com/accesslimit/accesslimit/core/internal/clientip"

// ClientIP configures how the caller's address is found. With the zero value it is the address of
// the connection's peer, and headers are ignored, because anybody can send them.
type ClientIP struct {
	// TrustedProxies are the addresses and CIDR ranges of your own proxies, and "unix" for those
	// that connect over a unix socket; none by default. The header is read only if the peer is one
	// of them. It is read from right to left, while the addresses are trusted. The first address
	// that is not trusted is the client's. If an entry cannot be read, the client's address is the
	// one to the right of it.
	//
	// Danger: anybody who can connect from a trusted address can choose the address that is
	// counted.
	TrustedProxies []string
	// Header is the header in which the proxies write the caller's address: X-Forwarded-For by
	// default, "Forwarded" (RFC 7239), or one that holds a single address, such as X-Real-IP.
	// Danger: name only a header that your proxies set or append to on every call.
	Header string
	// IPv6Prefix is the number of leading bits by which IPv6 addresses are counted: 32 to 128, 64
	// by default, because a single customer usually has a /64 of addresses to choose from.
	IPv6Prefix int
}

func (c ClientIP) compile() (*clientip.Finder, error) {
	finder, wrong := clientip.New(clientip.Config(c))
	if wrong != nil {
		return nil, &RuleError{Field: "Options.ClientIP." + wrong.Field, Value: wrong.Value, Why: wrong.Why}
	}
	return finder, nil
}
