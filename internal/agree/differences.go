package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// difference is how the versions may differ.
type difference struct {
	why     string
	was, is *regexp.Regexp   // of the whole line, if they are set
	without *regexp.Regexp   // what is not compared of it, but for groups named keep, or nil: nothing is
	after   []*regexp.Regexp // of earlier lines: there must be one for each
	with    *regexp.Regexp   // of any line of the new version's history, if it is set
	ends    bool             // what follows such a line is not compared
	met     int
}

// readDifferences reads a file of differences. An empty line ends each.
func readDifferences(name string) (all []*difference, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for _, part := range strings.Split(string(text), "\n\n") {
		d := new(difference)
		for line := range strings.Lines(part) {
			field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch {
			case strings.HasPrefix(line, "#"), line == "\n":
			case field == "why":
				d.why = value
			case field == "without":
				d.without, err = regexp.Compile(value)
			case field == "after":
				var after *regexp.Regexp
				after, err = regexp.Compile(value)
				d.after = append(d.after, after)
			case field == "with":
				d.with, err = regexp.Compile(value)
			case field == "was":
				d.was, err = regexp.Compile(value)
			case field == "is":
				d.is, err = regexp.Compile(value)
			case field == "then" && value == "nothing is compared":
				d.ends = true
			default:
				err = fmt.Errorf("not a field: %q", line)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		switch {
		case strings.TrimSpace(part) == "" || d.why == "" && d.without == nil && d.was == nil && d.is == nil: // only comments
		case d.why == "" || d.without == nil && (d.was == nil || d.is == nil):
			return nil, fmt.Errorf("%s: a difference needs why, and was and is, or without:\n%s", name, part)
		default:
			all = append(all, d)
		}
	}
	return all, nil
}

// find returns the first listed difference between a line of two histories, or nil. Text that one of
// them takes out of the lines is hidden from the next ones.
func find(all []*difference, was, is []string, line int) *difference {
	a, b := was[line], is[line]
	for _, d := range all {
		switch {
		case !matches(d.was, was[line]), !matches(d.is, is[line]), !d.isAfter(was[:line], is[:line]), d.with != nil && !slices.ContainsFunc(is, d.with.MatchString):
			continue
		case d.without == nil:
			return d
		}
		if a, b = d.without.ReplaceAllString(a, "$keep"), d.without.ReplaceAllString(b, "$keep"); a == b {
			return d
		}
	}
	return nil
}

// matches reports whether a line is like a pattern, if it is set.
func matches(pattern *regexp.Regexp, line string) bool {
	return pattern == nil || pattern.MatchString(line)
}

// isAfter reports whether earlier lines of one of the versions are such that there may be the difference.
func (d *difference) isAfter(was, is []string) bool {
	for _, after := range d.after {
		if !slices.ContainsFunc(was, after.MatchString) && !slices.ContainsFunc(is, after.MatchString) {
			return false
		}
	}
	return true
}
