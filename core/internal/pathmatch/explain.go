package pathmatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kinds are the names of the readings, in the order of spellings.
var kinds = [...]string{"route", "path", "decoded path", "cleaned path", "path without parameters", "path with slashes", "path with slashes, without parameters", "path behind a host"}

// cleanedKinds is the first of the readings of paths with a semicolon or a backslash.
const cleanedKinds = 4

// hostKind is the reading of a path that begins with two slashes.
const hostKind = 7

// reading is one reading of a path.
type reading struct{ kind, text, folded string }

func (r reading) String() string { return r.kind + " " + strconv.Quote(r.text) }

// everyCall is the reason why a rule without patterns and methods applies.
const everyCall = "it applies to every call"

// Explainer is the type of Explain. Callers pass the function, so that programs which never ask for
// explanations do not link it.
type Explainer func(s *Scope, method, route, routed string, loose Looseness) (matches bool, because string)

// Explain reports whether a call is in a scope, and says why. Its other arguments are those of
// MatchesMethod and Read.
func Explain(s *Scope, method, route, routed string, loose Looseness) (matches bool, because string) {
	if s.HasMethods() && !s.MatchesMethod(method) {
		return false, fmt.Sprintf("method %s is not %s", readable(method), strings.Join(s.methods, " or "))
	}
	switch {
	case !s.HasMethods():
		because = everyCall
	case method == "":
		because = "calls without a method, as in gRPC, match " + strings.Join(s.methods, " or ")
	default:
		because = fmt.Sprintf("method %s matches %s", readable(method), strings.Join(s.methods, " or "))
	}
	if !s.HasPatterns() {
		return true, because
	}
	readings := read(route, routed, loose)
	if len(s.paths.texts) > 0 {
		if matches, because = s.paths.explain(readings, loose); !matches {
			return false, because
		}
	}
	excepted, why := s.except.explainAll(readings, loose)
	if excepted && loose&Unsure != 0 {
		excepted, why = s.except.explainAll(read(route, routed, 0), 0)
	}
	if why == "" && because == everyCall {
		why = notExcepted(readings[0], &s.except)
	}
	if excepted || why != "" && len(s.paths.texts) == 0 {
		return !excepted, why
	}
	if why != "" {
		because += "; " + why
	}
	return true, because
}

// readable quotes a method that is not a valid one.
func readable(method string) string {
	if CheckMethod(method) != "" {
		return strconv.Quote(method)
	}
	return method
}

func read(route, routed string, loose Looseness) (readings []reading) {
	for i, text := range spellings(route, routed) {
		r := reading{kinds[i], text, loose.fold(text)}
		isSame := func(other reading) bool { return other.folded == r.folded }
		if text != "" && !slices.ContainsFunc(readings, isSame) {
			readings = append(readings, r)
		}
	}
	return readings
}

// explain reports whether any reading matches, and says which one.
func (p *patterns) explain(readings []reading, loose Looseness) (matches bool, because string) {
	for _, r := range readings {
		if at := p.match(r, loose); at >= 0 {
			return true, fmt.Sprintf("%v matches %q", r, p.texts[at])
		}
	}
	return false, fmt.Sprintf("%v %s", readings[0], p.noMatch())
}

// explainAll reports whether all readings match. It says which patterns match, or which reading
// does not although others do. It says nothing if no reading matches.
func (p *patterns) explainAll(readings []reading, loose Looseness) (all bool, because string) {
	var matched []int
	var other *reading
	for i, r := range readings {
		if at := p.match(r, loose); at >= 0 {
			matched = append(matched, at)
		} else if other == nil {
			other = &readings[i]
		}
	}
	switch {
	case len(matched) == 0:
		return false, ""
	case other != nil:
		return false, notExcepted(*other, p)
	}
	slices.Sort(matched)
	var texts []string
	for _, at := range slices.Compact(matched) {
		texts = append(texts, strconv.Quote(p.texts[at]))
	}
	return true, "excepted: every reading matches " + strings.Join(texts, " or ")
}

func notExcepted(r reading, exceptions *patterns) string {
	return fmt.Sprintf("it is not excepted, because the %v %s", r, exceptions.noMatch())
}

// match returns the index of the first pattern that matches a reading, or -1.
func (p *patterns) match(r reading, loose Looseness) int {
	return slices.IndexFunc(p.forms[loose&^Unsure], func(of pattern) bool { return of.matches(r.folded) })
}

func (p *patterns) noMatch() string {
	if len(p.texts) == 1 {
		return "does not match " + strconv.Quote(p.texts[0])
	}
	texts := make([]string, len(p.texts))
	for i, pattern := range p.texts {
		texts[i] = strconv.Quote(pattern)
	}
	return "matches none of " + strings.Join(texts, ", ")
}
