package operate

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/quote"
	"github.com/accesslimit/accesslimit/core/internal/route"
)

// Subject returns the subject that somebody typed:
//
//   - for an address, the subject by which the rules count it;
//   - for a network, such as 203.0.113.0/24, the subject for all callers in it: see [Overrides];
//   - for header:X-Tenant=acme or query:q=acme, the subject of a key by that header or parameter, which
//     has a digest of the value in its place, also as a part of several keys: user:alice|header:X-Device=7;
//   - for a string literal of Go, such as "\x00\xff", the text that it stands for, unchanged;
//   - otherwise the text itself, without spaces around it.
//
// [SubjectText] returns a text that stands for a known subject.
//
// The error is a *[core.RuleError] if a literal cannot be read, or the Limiter was never made.
func (o *Operator) Subject(typed string) (string, error) {
	if err := o.made(); err != nil {
		return "", err
	}
	typed = strings.TrimSpace(typed)
	if strings.HasPrefix(typed, `"`) {
		literal, err := strconv.Unquote(typed)
		if err != nil {
			return "", &core.RuleError{Field: "subject", Value: typed, Why: `begins with ", so it must be a string literal of Go, such as "\x00\xff"`}
		}
		return literal, nil
	}
	if addr, err := netip.ParseAddr(typed); err == nil {
		return o.parts.ClientIPs.Subject(addr), nil
	}
	if isNetwork(typed) {
		return "ip:" + typed, nil
	}
	return digested(typed), nil
}

// SubjectText returns the text by which a person names a subject: [Operator.Subject] returns the
// subject for it. It is the subject itself if that is printable and is not read as another subject,
// as query:q=acme is, and otherwise a string literal of Go.
func SubjectText(subject string) string {
	_, err := netip.ParseAddr(subject)
	isAddress := err == nil
	if isAddress || isNetwork(subject) || strings.HasPrefix(subject, `"`) || strings.TrimSpace(subject) != subject || digested(subject) != subject {
		return strconv.Quote(subject)
	}
	return quote.Unprintable(subject)
}

func isNetwork(typed string) bool {
	_, err := netip.ParsePrefix(typed)
	return err == nil
}

// digested returns a subject with each part such as header:X-Tenant=acme as rules count it.
func digested(subject string) string {
	parts := strings.Split(subject, "|")
	for i, part := range parts {
		parts[i] = digestedPart(part)
	}
	return strings.Join(parts, "|")
}

// digestedPart returns header:X-Tenant=acme as rules by a header count it, and so for a query.
func digestedPart(part string) string {
	word, rest, _ := strings.Cut(part, ":")
	name, value, ok := strings.Cut(rest, "=")
	if !ok || word != "header" && word != "query" || strings.Contains(name, ":") {
		return part
	}
	return keyed(word, name, core.Digest(value))
}

// keyed returns the subject of a key by a header or a query.
func keyed(word, name, digest string) string {
	if word == "header" {
		name = strings.ToLower(name)
	}
	return word + ":" + name + ":" + digest
}

// bareSubject is the hint about a subject that no key of package core makes.
const bareSubject = "Rules count users as user:alice, and addresses as ip:203.0.113.7. Only a Key or a handler of the service makes other subjects."

// SubjectHint returns a sentence about a subject that is probably misspelled, because no key of
// package core makes it, or "". It is no error, because a rule may have a Key of its own.
func (o *Operator) SubjectHint(subject string) string {
	if o.made() != nil {
		return ""
	}
	address := strings.TrimPrefix(subject, "ip:")
	addr, err := netip.ParseAddr(address)
	if port, bad := netip.ParseAddrPort(address); bad == nil {
		addr, err = port.Addr(), nil
	}
	switch {
	case err == nil && o.parts.ClientIPs.Subject(addr) != subject:
		return "Rules by IP count this address as " + o.parts.ClientIPs.Subject(addr) + "."
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
		right = "host:" + route.Host(text)
	case "header", "query":
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return bareSubject
		}
		if !digests.MatchString(value) {
			value = core.Digest(value)
		}
		right = keyed(word, name, value)
	}
	if right == subject {
		return ""
	}
	return "Rules by " + word + " count this as " + right + "."
}

// digests are what core.Digest returns.
var digests = regexp.MustCompile(`^[0-9a-f]{32}$`)
