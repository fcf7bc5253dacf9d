package adapter_test

import (
	"net"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/adapter"
)

// PeerAddr reads whatever netip reads, and accepts nothing that netip rejects.
func TestPeerAddrIsNetips(t *testing.T) {
	digits := rapid.StringMatching(`[0-9]{0,6}`)
	dotted := rapid.Custom(func(t *rapid.T) string {
		text := digits.Draw(t, "first")
		for range rapid.IntRange(1, 4).Draw(t, "more") {
			text += rapid.SampledFrom([]string{".", ".", ".", ".", ":", "", "%", "x", " "}).Draw(t, "mark") + digits.Draw(t, "digits")
		}
		return text
	})
	usual := rapid.StringMatching(`(0|1?[0-9]{1,2}|2[0-5]{2}|256)(\.(0|1?[0-9]{1,2}|2[0-5]{2})){3}:(0|0?[0-9]{1,5}|6553[0-9]|-1|\+1|)`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(usual, dotted, rapid.String()).Draw(t, "text")
		want := netip.Addr{}
		if peer, err := netip.ParseAddrPort(text); err == nil {
			want = peer.Addr()
		} else if addr, err := netip.ParseAddr(text); err == nil {
			want = addr
		}
		if got := adapter.PeerAddr(text); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	})
}

func TestPeerAddr(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1:1234": "192.0.2.1", "192.0.2.1": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::1", "2001:db8::1": "2001:db8::1",
		"[fe80::1%eth0]:80": "fe80::1%eth0", "@": "", "": "", "pipe": "", "/run/x.sock": "", "host:80": "", "192.0.2.1:x": "",
	} {
		var addr netip.Addr
		if want != "" {
			addr = netip.MustParseAddr(want)
		}
		if got := adapter.PeerAddr(text); got != addr {
			t.Errorf("%q is %v, want %v", text, got, addr)
		}
	}
}

// An address of another type is read as its text, and is a unix socket only if that is no address.
func TestPeerOf(t *testing.T) {
	for _, test := range []struct {
		remote net.Addr
		want   string
	}{
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1).To4(), Port: 4711}, "192.0.2.1"}, {named("192.0.2.2:4711"), "192.0.2.2"}, {named("[2001:db8::1]:80"), "2001:db8::1"},
		{&net.UnixAddr{Name: "/run/x.sock", Net: "unix"}, "invalid IP"}, {nil, "invalid IP"},
	} {
		if got := adapter.PeerOf(test.remote).String(); got != test.want {
			t.Errorf("%v is %s, want %s", test.remote, got, test.want)
		}
	}
}

// named is an address that is only a text, as under an http.Server.
type named string

func (named) Network() string  { return "tcp" }
func (n named) String() string { return string(n) }
