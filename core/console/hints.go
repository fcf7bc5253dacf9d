package console

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core"
)

// Hints about subjects and rules that are probably misspelled. These are not errors, because a rule
// may have its own Key, and another process may have other rules.
const (
	bareSubject = "Rules count users as user:alice, and addresses as ip:203.0.113.7. Only a Key or a handler of the service makes other subjects."
	unknownRule = "No rule of this process has this name: look for a misspelling, unless another process has the rule."
	notBanning  = "No rule of this process sees bans under this name: look for a misspelling, unless another process has the rule."
)

// hintAbout returns a hint about a subject that somebody typed, or "".
func (h *Handler) hintAbout(subject string) string {
	address := strings.TrimPrefix(subject, "ip:")
	addr, err := netip.ParseAddr(address)
	if port, bad := netip.ParseAddrPort(address); bad == nil {
		addr, err = port.Addr(), nil
	}
	switch {
	case err == nil && h.limiter.IPSubject(addr) != subject:
		return "Rules by IP count this address as " + h.limiter.IPSubject(addr) + "."
	case err != nil && !strings.Contains(subject, ":"):
		return bareSubject
	case err != nil:
		return hintAboutKey(subject)
	default:
		return ""
	}
}

// hintAboutKey returns a hint about a subject that begins like the subjects of a key function of
// package core, but cannot be one of them. It returns "" for any other subject.
func hintAboutKey(subject string) string {
	word, text, _ := strings.Cut(subject, ":")
	right := subject
	switch word {
	case "host":
		right = "host:" + hostOf(text)
	case "header", "query":
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return bareSubject
		}
		if word == "header" {
			name = strings.ToLower(name)
		}
		if !digests.MatchString(value) {
			value = core.Digest(value)
		}
		right = word + ":" + name + ":" + value
	}
	if right == subject {
		return ""
	}
	return "Rules by " + word + " count this as " + right + "."
}

// digests are what core.Digest returns.
var digests = regexp.MustCompile(`^[0-9a-f]{32}$`)

// hostOf returns a host as rules count it: in lower case, and without a port.
func hostOf(text string) string {
	if name, _, err := net.SplitHostPort(text); err == nil {
		text = name
	}
	return strings.TrimSuffix(strings.Trim(strings.ToLower(text), "[]"), ".")
}

// isUnknown reports whether an act was a ban under a name for which no rule of this process sees bans.
func (h *Handler) isUnknown(where location, a *action) bool {
	return where.name == "ban" && !slices.Contains(h.banningRules(), show(a.rule))
}

// hintAfter returns a hint about an act that was carried out, or "".
func (h *Handler) hintAfter(where location, a *action) string {
	if h.isUnknown(where, a) {
		return notBanning
	}
	return h.hintAbout(a.subject)
}

// hintIfMissing returns the hint if the rule is not one of rules.
func hintIfMissing(rules choice, rule, hint string) string {
	if slices.Contains(rules, rule) {
		return ""
	}
	return hint
}
