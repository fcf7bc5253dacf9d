package rulefile

import (
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// readSkip sets Skip, and adds paths to Except. An exception holds only if every reading of a path
// matches, so no spelling of it avoids the rule.
func (r *ruleReader) readSkip(f *rulefield.Field, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		r.rule.Skip = r.skipFunction(f, n, "skip")
		return
	}
	if paths := r.good(n, "paths"); paths != nil {
		r.rule.Except = append(r.rule.Except, textsOf(paths)...)
	}
	if name := r.good(n, "function"); name != nil {
		r.rule.Skip = r.skipFunction(f, name, "skip.function")
	}
	if addresses := r.good(n, "addresses"); addresses != nil {
		prefixes := prefixesOf(addresses)
		if why := wrongAddresses(prefixes); why != "" {
			r.fail(addresses, "skip.addresses", why)
		}
		r.rule.Skip = skipAddresses(prefixes, r.rule.Skip)
	}
}

func (r *ruleReader) skipFunction(f *rulefield.Field, n *yaml.Node, label string) func(core.Request) bool {
	return r.function(f, n, label).Interface().(func(core.Request) bool)
}

// good returns the value of a field in a mapping, or nil if it has none or one with an error.
func (r *ruleReader) good(n *yaml.Node, name string) *yaml.Node {
	if value := get(n, name); !r.bad[value] {
		return value
	}
	return nil
}

// skipAddresses returns a function that skips the callers with these addresses, and the calls that
// another function skips, unless that is nil.
func skipAddresses(prefixes []netip.Prefix, other func(core.Request) bool) func(core.Request) bool {
	return func(call core.Request) bool {
		caller := call.ClientIP().Unmap().WithZone("")
		if slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(caller) }) {
			return true
		}
		return other != nil && other(call)
	}
}

// wrongAddresses returns what is wrong with the addresses together, or "".
func wrongAddresses(prefixes []netip.Prefix) string {
	for _, all := range [...]string{"0.0.0.0/0", "::/0"} {
		if covered(netip.MustParsePrefix(all), prefixes) {
			return "are together all of " + all + ": to try a rule that refuses nobody, set mode: dry_run"
		}
	}
	return ""
}

// covered reports whether all addresses of a range are in one of the prefixes.
func covered(all netip.Prefix, prefixes []netip.Prefix) bool {
	var inside []netip.Prefix
	for _, p := range prefixes {
		switch {
		case !p.Overlaps(all):
		case p.Bits() <= all.Bits():
			return true
		default:
			inside = append(inside, p)
		}
	}
	if len(inside) == 0 {
		return false
	}
	lower, upper := halves(all)
	return covered(lower, inside) && covered(upper, inside)
}

// halves returns the two halves of a range of more than one address.
func halves(all netip.Prefix) (lower, upper netip.Prefix) {
	bytes, bits := all.Addr().AsSlice(), all.Bits()
	bytes[bits/8] |= 0x80 >> (bits % 8)
	middle, _ := netip.AddrFromSlice(bytes)
	return netip.PrefixFrom(all.Addr(), bits+1), netip.PrefixFrom(middle, bits+1)
}

func prefixesOf(n *yaml.Node) (prefixes []netip.Prefix) {
	for _, text := range textsOf(n) {
		prefix, _ := prefixOf(text)
		prefixes = append(prefixes, prefix)
	}
	return prefixes
}
