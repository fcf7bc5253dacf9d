package core

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// scope is where a rule applies when it is attached to a whole router.
type scope struct {
	methods       []string
	paths, except patterns
}

// patterns are path patterns: as they were subject, and as a router takes them that minds no ASCII case, no trailing slashes,
// or neither. See looseness for the places.
type patterns [4][]string

func newPatterns(given []string) (p patterns) {
	for i := range p {
		for _, pattern := range given {
			p[i] = append(p[i], looseness(i).fold(pattern))
		}
	}
	return p
}

func (p *patterns) empty() bool { return len(p[exact]) == 0 }

// looseness is what makes no difference to a router.
type looseness uint8

const (
	exact   looseness = 0
	anyCase looseness = 1
	// anySlash is for trailing slashes.
	anySlash looseness = 2
)

// oneAlternative is how a net/http pattern spells a parameter.
var oneAlternative = regexp.MustCompile(`\{[^{},]*\}`)

func badPattern(pattern string) string {
	if !strings.HasPrefix(pattern, "/") {
		return "must start with a slash, as every path does"
	}
	if !doublestar.ValidatePattern(pattern) {
		return "is not a pattern: see doublestar for the syntax, as in /limit/** or /api/*/items"
	}
	if oneAlternative.MatchString(pattern) {
		return "has braces around a single word, which match that word only: write * for a parameter, {a,b} for alternatives"
	}
	return ""
}

func badMethod(method string) string {
	if method == "" || strings.ContainsFunc(method, func(r rune) bool { return (r < 'A' || r > 'Z') && r != '-' }) {
		return "must be one HTTP method in capitals"
	}
	return ""
}

// applies says whether the rule is for this call. A pattern counts if any reading of the path matches, an exception only if
// all of them do: the router decides by one of them, and one canonical path leaves holes in every framework.
func (s *scope) applies(c *call) bool {
	if len(s.methods) > 0 {
		if method := c.Method(); method != "" && !s.hasMethod(method) {
			return false
		}
	}
	if s.paths.empty() && s.except.empty() {
		return true
	}
	readings := c.readings()
	if !s.paths.empty() && !slices.ContainsFunc(readings, s.paths.match(c)) {
		return false
	}
	excepted := s.except.match(c)
	for _, reading := range readings {
		if !excepted(reading) {
			return true
		}
	}
	return false
}

// hasMethod minds that a HEAD runs the handler of a GET, and that a handler of all methods serves "post" as well.
func (s *scope) hasMethod(method string) bool {
	return slices.ContainsFunc(s.methods, func(m string) bool {
		return strings.EqualFold(m, method) || m == "GET" && strings.EqualFold(method, "HEAD")
	})
}

// match is the test of one reading against the patterns.
func (p *patterns) match(c *call) func(reading string) bool {
	return func(reading string) bool {
		return slices.ContainsFunc(p[c.loose], func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, reading) })
	}
}

// readings are the ways in which a router could understand the call's path: the pattern of the matched route, the path as
// the framework routes it, decoded, and decoded and cleaned.
func (c *call) readings() []string {
	if len(c.paths) > 0 {
		return c.paths
	}
	c.loose = loosenessOf(c.View)
	routed := c.Path()
	decoded, err := url.PathUnescape(routed)
	if err != nil {
		decoded = routed
	}
	for _, reading := range [...]string{c.Route(), routed, decoded, path.Clean(rooted(decoded))} {
		if reading == "" {
			continue
		}
		reading = c.loose.fold(reading)
		if !slices.Contains(c.paths, reading) {
			c.paths = append(c.paths, reading)
		}
	}
	return c.paths
}

func loosenessOf(v View) (l looseness) {
	view, ok := v.(LooseView)
	if !ok {
		return exact
	}
	noCase, noSlash := view.Loose()
	if noCase {
		l |= anyCase
	}
	if noSlash {
		l |= anySlash
	}
	return l
}

// fold brings spellings that make no difference to one: it lowers ASCII, and nothing else, as fasthttp's routers do, and
// cuts trailing slashes.
func (l looseness) fold(text string) string {
	if l&anyCase != 0 {
		text = strings.Map(lowerASCII, text)
	}
	if l&anySlash != 0 {
		text = rooted(strings.TrimRight(text, "/"))
	}
	return text
}

// rooted is a path with a slash in front, which nearly every path has already.
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
