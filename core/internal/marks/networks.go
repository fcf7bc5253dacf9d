package marks

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"strings"
	"sync/atomic"
)

// addressPrefix begins the subjects of addresses and networks.
const addressPrefix = "ip:"

// networks says which lengths of networks have marks, so that an address is looked up in these only.
type networks struct {
	some atomic.Bool      // there are any
	four atomic.Uint64    // a bit for each length of an IPv4 network, 0 to 32
	six  [3]atomic.Uint64 // and of an IPv6 network, 0 to 128
}

// add notes that there are marks of a network. It does not forget those that have gone, because a
// search that finds nothing is cheap.
func (n *networks) add(network netip.Prefix) {
	if network.Addr().Is4() {
		n.four.Or(1 << network.Bits())
	} else {
		n.six[network.Bits()/64].Or(1 << (network.Bits() % 64))
	}
	n.some.Store(true)
}

// find returns the marks under the rule of the longest networks of an address. A ban by a rule is left
// out: it is of the subject that was refused, and not of everybody at its address.
func (n *networks) find(r *Rule, addr netip.Addr) (f Found) {
	addr = addr.Unmap().WithZone("")
	words := [3]uint64{n.four.Load()}
	if !addr.Is4() {
		words = [3]uint64{n.six[0].Load(), n.six[1].Load(), n.six[2].Load()}
	}
	var room [64]byte
	for word := 2; word >= 0; word-- {
		for lengths := words[word]; lengths != 0 && (f.ban == nil || f.other == nil); {
			bit := bits.Len64(lengths) - 1
			lengths &^= 1 << bit
			network, _ := addr.Prefix(64*word + bit) // the length suits the address
			shorter := r.found(r.subjects.find(appendNetwork(room[:0], network)))
			if f.ban == nil && shorter.ban != nil && !shorter.ban.isByRule() {
				f.ban = shorter.ban
			}
			if f.other == nil {
				f.other = shorter.other
			}
		}
	}
	return f
}

// appendNetwork appends the subject of a network. That of a single address has no length.
func appendNetwork(dst []byte, network netip.Prefix) []byte {
	dst = append(dst, addressPrefix...)
	if network.IsSingleIP() {
		return network.Addr().AppendTo(dst)
	}
	return network.AppendTo(dst)
}

// Network returns the network that a subject is, such as ip:203.0.113.0/24, ip:203.0.113.7 or
// ip:2001:db8::/32, and whether it is one.
func Network(subject string) (network netip.Prefix, ok bool) {
	text, ok := strings.CutPrefix(subject, addressPrefix)
	if !ok {
		return network, false
	}
	if strings.Contains(text, "/") { // otherwise the error would be made for nothing
		network, err := netip.ParsePrefix(text)
		return network, err == nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return network, false
	}
	return netip.PrefixFrom(addr, addr.BitLen()), true
}

// CheckNetwork returns what is wrong with a subject that is a network, where addresses of IPv6 are
// counted by networks of a length, or nil. The address of a network must be its first, because the
// marks of one network must have one name.
func CheckNetwork(subject string, length int) error {
	network, ok := Network(subject)
	switch {
	case !ok:
		return nil
	case string(appendNetwork(nil, network.Masked())) != subject:
		return fmt.Errorf("must be written as %s", appendNetwork(nil, network.Masked()))
	case network.Addr().Is4In6():
		return errors.New("must be written as an address of IPv4")
	case network.Addr().Is4() && network.Bits() < shortestFour, network.Addr().Is6() && network.Bits() < shortestSix:
		return fmt.Errorf("must have at least %d bits, or %d of IPv6", shortestFour, shortestSix)
	case network.Addr().Is6() && network.Bits() > length:
		wider, _ := network.Addr().Prefix(length)
		return fmt.Errorf("is longer than the networks that callers are counted by: use %s", appendNetwork(nil, wider))
	}
	return nil
}
