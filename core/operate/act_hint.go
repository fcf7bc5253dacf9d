package operate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ActHint returns a sentence about why an act on a subject of a rule probably does nothing, or "": no
// attached rule has the name, none of them counts by such subjects, or no key of package core makes
// the subject. Bans and overrides of an address or a network meet its callers, whatever a rule counts
// by. The hint is no error, because another process may have other rules. Programs ask it before they
// act, so that nobody bans the wrong subject by a misspelling.
func (o *Operator) ActHint(rule, subject string) string {
	attached, _, err := o.Rules()
	if err != nil {
		return ""
	}
	var names []string
	var counts []string // the keys of the rules with this name
	for i := range attached {
		r := &attached[i]
		names = append(names, r.Names...)
		if !slices.Contains(r.Names, rule) {
			continue
		}
		if r.counts(rule, subject, o.isAddress(subject)) {
			return ""
		}
		counts = append(counts, r.CountsBy)
	}
	if counts == nil {
		return fmt.Sprintf("No rule is named %q. The rules: %s.", rule, listed(names))
	}
	if hint := o.SubjectHint(subject); hint != "" {
		return hint
	}
	return fmt.Sprintf("Rule %q counts by %s, so it never meets the subject %q.", rule, strings.Join(counts, " and by "), subject)
}

// maxListed is how many names a hint lists.
const maxListed = 20

// listed returns names for a sentence.
func listed(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Counts reports whether a rule can count by a subject under one of its names, as far as its key
// tells, or the subject is an address or a network. If not, acts on that subject affect nobody.
func (o *Operator) Counts(rule *AttachedRule, name, subject string) bool {
	return o.made() == nil && rule.counts(name, subject, o.isAddress(subject))
}

// counts reports whether the rule can count by a subject, as far as its key tells. isAddress reports
// whether the subject is an address or a network, whose bans and overrides each rule obeys.
func (r *AttachedRule) counts(name, subject string, isAddress bool) bool {
	word, of, _ := strings.Cut(r.CountsBy, ":")
	if isAddress {
		return true
	}
	switch word {
	case "ip":
		return false
	case "user", "host", "value":
		return strings.HasPrefix(subject, word+":")
	case "header":
		return strings.HasPrefix(subject, "header:"+strings.ToLower(of)+":")
	case "query", "param":
		return strings.HasPrefix(subject, r.CountsBy+":")
	case "global":
		return subject == name
	default:
		return !strings.HasPrefix(word, "[") || strings.Contains(subject, "|")
	}
}

// isAddress reports whether a subject is an address as rules count it, a network, or what stands for
// calls without an address. Services may have another Options.ClientIP.IPv6Prefix.
func (o *Operator) isAddress(subject string) bool {
	text := strings.TrimPrefix(subject, "ip:")
	if network, err := netip.ParsePrefix(text); err == nil {
		return subject == "ip:"+network.Masked().String()
	}
	addr, _ := netip.ParseAddr(text) // the zero Addr is that of calls without one
	return subject == o.parts.ClientIPs.Subject(addr)
}
