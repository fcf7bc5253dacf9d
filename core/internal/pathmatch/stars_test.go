package pathmatch

import (
	"strings"
	"testing"
)

// texts returns all texts of at most so many letters.
func texts(letters string, most int) []string {
	all, longest := []string{""}, []string{""}
	for range most {
		var longer []string
		for _, text := range longest {
			for _, letter := range letters {
				longer = append(longer, text+string(letter))
			}
		}
		all, longest = append(all, longer...), longer
	}
	return all
}

// Each pattern of stars that is right matches what its segments say: ** any number of segments, and a
// star any part of one.
func TestStars(t *testing.T) {
	for _, pattern := range texts("/a*", 5) {
		pattern = "/" + pattern
		if CheckPattern(pattern) != "" || strings.Contains(pattern, "//") {
			continue
		}
		one := newPatterns([]string{pattern})
		matches := one.matcher(0)
		for _, path := range texts("/ab", 4) {
			path = "/" + path
			want := matchSegments(strings.Split(pattern, "/"), strings.Split(path, "/"))
			if got := matches(path); got != want {
				t.Errorf("%s matches %s: %t", pattern, path, got)
			}
		}
	}
}

func matchSegments(pattern, path []string) bool {
	switch {
	case len(pattern) == 0:
		return len(path) == 0
	case pattern[0] == "**":
		return matchSegments(pattern[1:], path) || len(path) > 0 && matchSegments(pattern, path[1:])
	}
	return len(path) > 0 && matchSegment(pattern[0], path[0]) && matchSegments(pattern[1:], path[1:])
}

func matchSegment(pattern, segment string) bool {
	switch {
	case pattern == "":
		return segment == ""
	case pattern[0] == '*':
		return matchSegment(pattern[1:], segment) || segment != "" && matchSegment(pattern, segment[1:])
	}
	return segment != "" && pattern[0] == segment[0] && matchSegment(pattern[1:], segment[1:])
}
