package rulefile

import (
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
)

// readSkip sets Skip, and adds paths to Except. An exception holds only if every reading of a path
// matches, so no spelling of it avoids the rule.
func (r *ruleReader) readSkip(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		r.rule.Skip = function(r, r.functions.Skips, n, "skip", "Skips")
		return
	}
	if paths := r.good(n, "paths"); paths != nil {
		r.rule.Except = append(r.rule.Except, textsOf(paths)...)
	}
	if name := r.good(n, "function"); name != nil {
		r.rule.Skip = function(r, r.functions.Skips, name, "skip.function", "Skips")
	}
	if addresses := r.good(n, "addresses"); addresses != nil {
		r.rule.Skip = skipAddresses(prefixesOf(addresses), r.rule.Skip)
	}
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

func prefixesOf(n *yaml.Node) (prefixes []netip.Prefix) {
	for _, text := range textsOf(n) {
		prefix, _ := prefixOf(text)
		prefixes = append(prefixes, prefix)
	}
	return prefixes
}
