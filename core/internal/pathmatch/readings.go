package pathmatch

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// Looseness says which spellings of a path a router does not distinguish.
type Looseness uint8

// The bits of a Looseness.
const (
	AnyCase  Looseness = 1 << iota // ASCII letters in any case
	AnySlash                       // with or without trailing slashes
	Unsure                         // it is not known whether the router does not distinguish these
)

// forms is the number of forms that a pattern has, one for each Looseness but for Unsure.
const forms = Unsure

// Readings holds the ways in which a router, or a server behind it, could read the path of one
// call: the pattern of the matched route, the path that the framework routes, that path decoded,
// and decoded and cleaned. Further readings are cleaned by servers that end a segment at a
// semicolon, treat a backslash as a slash, or both, and by those that resolve a path as browsers
// resolve a link, where a host stands behind two slashes. The zero value is empty.
type Readings struct {
	texts []string
	exact []string // the texts that are not folded, if the router may distinguish them
	loose Looseness
}

// Empty reports whether nothing has been read since the last Clear.
func (r *Readings) Empty() bool { return len(r.texts) == 0 }

// Clear empties r for another call, and keeps its memory.
func (r *Readings) Clear() {
	clear(r.texts)
	r.texts, r.exact, r.loose = r.texts[:0], nil, 0
}

// Read adds the readings of a call's route, which may be "", and of its path.
func (r *Readings) Read(route, routed string, loose Looseness) {
	r.loose = loose
	for _, text := range spellings(route, routed) {
		if text == "" {
			continue
		}
		if loose&Unsure != 0 {
			r.exact = append(r.exact, text)
		}
		text = loose.fold(text)
		if !slices.Contains(r.texts, text) {
			r.texts = append(r.texts, text)
		}
	}
}

// spellings returns the readings of a call before they are folded. Some may be equal, or "".
func spellings(route, routed string) [len(kinds)]string {
	decoded, err := url.PathUnescape(routed)
	if err != nil {
		decoded = routed
	}
	all := [len(kinds)]string{route, routed, decoded, path.Clean(rooted(decoded))}
	if hasHost(decoded) {
		all[hostKind] = path.Clean(withoutHost(decoded))
	}
	if strings.ContainsAny(decoded, `;\`) {
		slashed := strings.ReplaceAll(decoded, `\`, "/")
		for i, text := range [...]string{withoutParameters(decoded), slashed, withoutParameters(slashed)} {
			all[cleanedKinds+i] = path.Clean(rooted(text))
		}
	}
	return all
}

// hasHost reports whether a path begins with a host, as withoutHost finds it.
func hasHost(text string) bool {
	return len(text) > 1 && (text[0] == '/' || text[0] == '\\') && (text[1] == '/' || text[1] == '\\')
}

// withoutHost returns what new URL(path, base) of JavaScript takes for the path (WHATWG URL Standard,
// section 4.4): /login of //host/login, and of /\\host\login.
func withoutHost(text string) string {
	text = strings.TrimLeft(strings.ReplaceAll(text, `\`, "/"), "/")
	_, rest, _ := strings.Cut(text, "/")
	return rooted(rest)
}

// withoutParameters returns a path whose segments are cut at their first semicolon. RFC 3986
// section 3.3 allows servers to find parameters there.
func withoutParameters(text string) string {
	var b strings.Builder
	for segment := range strings.SplitAfterSeq(text, "/") {
		name, _, found := strings.Cut(segment, ";")
		b.WriteString(name)
		if found && strings.HasSuffix(segment, "/") {
			b.WriteByte('/')
		}
	}
	return b.String()
}

// fold returns the same text for all spellings that the router does not distinguish. It lowers
// ASCII letters only, as the routers of fasthttp do, and cuts trailing slashes.
func (l Looseness) fold(text string) string {
	if l&AnyCase != 0 {
		text = strings.Map(lowerASCII, text)
	}
	if l&AnySlash != 0 {
		text = rooted(strings.TrimRight(text, "/"))
	}
	return text
}

// rooted returns a path with a slash in front. Nearly every path already has one.
func rooted(text string) string {
	if strings.HasPrefix(text, "/") {
		return text
	}
	return "/" + text
}

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
