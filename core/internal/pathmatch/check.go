package pathmatch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
)

// maxAlternatives bounds the alternatives in braces that doublestar tries for one pattern. Braces
// beside each other multiply: {a,a} forty times would take it years.
const maxAlternatives = 200

var (
	// braced is how a net/http pattern spells a parameter.
	braced = regexp.MustCompile(`\{[^{},]*\}`)
	// query matches the beginning of a URL's query. In a pattern, a question mark stands for one
	// character.
	query = regexp.MustCompile(`\?[^/?]*=`)
	// mixedStars matches two stars that are not a segment of their own.
	mixedStars = regexp.MustCompile(`[^/*]\*\*|\*\*[^/*]`)
)

// CheckPattern returns what is wrong with a pattern, or "".
func CheckPattern(pattern string) string {
	switch {
	case !strings.HasPrefix(pattern, "/"):
		return "must start with a slash, as every path does"
	case strings.HasPrefix(pattern, "//"):
		return "must be a path without a host: it starts with two slashes"
	case query.MatchString(pattern):
		return "has a query, which is not part of a path: leave it out"
	case strings.Contains(pattern, "#"):
		return "has a fragment, which clients do not send: leave it out, or write ? for the character"
	case strings.ContainsFunc(pattern, unicode.IsSpace):
		return "has a space, which a path never has when it is sent: write ? for it"
	case !doublestar.ValidatePattern(pattern):
		return "is not a pattern: see doublestar for the syntax, as in /limit/** or /api/*/items"
	case braced.MatchString(pattern):
		return "has braces around a single word, which match that word only: write * for a parameter, {a,b} for alternatives"
	}
	var all []string
	switch steps, cutsClass := expand(pattern, 0, &all); {
	case cutsClass:
		return "has a comma or a brace in brackets within braces, which ends the alternative there: leave out the brackets, or write several patterns"
	case steps > maxAlternatives:
		return fmt.Sprintf("has braces with more than %d combinations to try: write several patterns, or *", maxAlternatives)
	}
	for _, one := range all {
		if wrong := checkStars(unescaped(one)); wrong != "" {
			return wrong
		}
	}
	return ""
}

// checkStars returns what is wrong with the stars of a pattern without braces, or "". doublestar takes
// three stars for one, and a slash at the end, behind two, for one that may be missing, but not always.
// Two stars beside other characters are one for it, but until v4.10.0 not in braces.
func checkStars(pattern string) string {
	switch {
	case strings.Contains(pattern, "***"):
		return "has three stars in a row: write * for one segment, or ** for any number of them"
	case strings.HasSuffix(pattern, "**/"):
		return "ends in a slash behind **, which stands for every path below, with or without a slash: leave out the slash"
	case mixedStars.MatchString(pattern):
		return "has ** beside other characters in a segment, where it stands for one segment only: write * there, or ** by itself, as in /limit/**"
	}
	return ""
}

// CheckMethod returns what is wrong with a method, or "".
func CheckMethod(method string) string {
	if method == "" || strings.ContainsFunc(method, func(r rune) bool { return (r < 'A' || r > 'Z') && r != '-' }) {
		return "must be one HTTP method in capitals"
	}
	return ""
}

// expand replaces the braces of a valid pattern by their alternatives as doublestar does, from left
// to right beginning at an index, and returns how many it tried. It stops beyond maxAlternatives, and
// at an alternative that ends within brackets, which matches nothing. It adds the patterns without
// braces to all.
func expand(pattern string, from int, all *[]string) (steps int, cutsClass bool) {
	for i := from; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '[':
			size := classSize(pattern[i:])
			if size == 0 {
				return steps, true
			}
			i += size - 1
		case '{':
			inside, after := cutBrace(pattern[i+1:])
			for _, alternative := range inside {
				more, cuts := expand(pattern[:i]+alternative+after, i, all)
				if steps += 1 + more; cuts || steps > maxAlternatives {
					return steps, cuts
				}
			}
			return steps, false
		}
	}
	*all = append(*all, pattern)
	return steps, false
}

// classSize returns the length of the brackets that a text begins with, or 0 if they do not end.
func classSize(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case ']':
			return i + 1
		}
	}
	return 0
}

// unescaped returns a pattern in which spaces replace escaped characters.
func unescaped(pattern string) string { return escape.ReplaceAllString(pattern, "  ") }

var escape = regexp.MustCompile(`(?s)\\[\x00-\x7f]`)

// cutBrace returns the alternatives up to the end of a brace, and what follows it.
func cutBrace(pattern string) (inside []string, after string) {
	depth, from := 0, 0
	for i, c := range []byte(unescaped(pattern)) {
		switch {
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == ',' && depth == 0:
			inside, from = append(inside, pattern[from:i]), i+1
		case c == '}':
			return append(inside, pattern[from:i]), pattern[i+1:]
		}
	}
	return inside, "" // only in an invalid pattern
}

// Never returns why a scope applies to no call although its patterns are valid, or "".
func (s *Scope) Never() string {
	if s.HasMethods() && len(s.Unregistered()) == len(s.methods) {
		return fmt.Sprintf("method %s is not one that clients send", strings.Join(s.methods, ", "))
	}
	switch {
	case s.except.cover("/**"):
		return "its exceptions cover every path"
	case len(s.paths.texts) > 0 && !slices.ContainsFunc(s.paths.texts, func(path string) bool { return !s.except.cover(path) }):
		return "its exceptions cover all of its paths"
	}
	return ""
}

// Unregistered returns the methods that are not registered, and so perhaps misspelled.
func (s *Scope) Unregistered() (methods []string) {
	return slices.DeleteFunc(slices.Clone(s.methods), func(m string) bool { return slices.Contains(registered, m) })
}

// registered are the methods of the HTTP Method Registry (RFC 9110 section 16.1) that are names.
var registered = strings.Fields(`ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DELETE GET HEAD LABEL LINK LOCK MERGE
	MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH POST PRI PROPFIND PROPPATCH PUT QUERY REBIND
	REPORT SEARCH TRACE UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL
	BREW PURGE M-SEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE`)

// cover reports whether one of the patterns is certain to match every path that the given pattern
// matches. It compares with equal patterns, and with those whose only wildcard is /** at the end.
func (p *patterns) cover(pattern string) bool {
	return slices.ContainsFunc(p.texts, func(wider string) bool {
		base, all := strings.CutSuffix(wider, "/**")
		return wider == pattern || all && !strings.ContainsAny(base, `*?[{\`) && (pattern == base || strings.HasPrefix(pattern, base+"/"))
	})
}
