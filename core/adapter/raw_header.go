package adapter

import (
	"bytes"
	"slices"
	"strings"
)

// SentOrder returns the values of a header in the order in which its lines were sent, and none of a
// trailer. It is for frameworks on fasthttp, whose own order says nothing about proxies: fasthttp
// deletes a line, such as Transfer-Encoding before an empty body, by moving the last one into its
// place, and appends the trailers of a body in chunks. raw is the block of headers as it was sent.
// values are those that the framework has now, the first of them what its getter returns.
//
// If the getter returns another value than the first that was sent, it comes before them: a rule that
// counts by the first value counts what a handler reads. A value that was not sent is from a
// middleware, and takes the place of a line that it has replaced. If there is no such line, it comes
// last, or is left out if it may be a trailer.
func SentOrder(raw []byte, name string, values []string) []string {
	if len(values) == 0 {
		return nil
	}
	// A length of 0 does not tell chunks without content from no body.
	chunked := len(linesOf(raw, "Transfer-Encoding")) > 0
	if len(values) == 1 && !chunked {
		return values
	}
	ordered := inOrder(values, linesOf(raw, name), chunked)
	if len(ordered) > 0 && ordered[0] != values[0] {
		ordered = slices.Insert(ordered, 0, values[0])
	}
	return ordered
}

// inOrder returns the values in the order of the lines that were sent.
func inOrder(values, sent []string, trailers bool) (ordered []string) {
	left := make(map[string]int)
	for _, value := range values {
		left[value]++
	}
	replaced := make([]bool, len(sent))
	for i, line := range sent {
		left[line]--
		replaced[i] = left[line] < 0
	}
	unsent := slices.DeleteFunc(slices.Clone(values), func(value string) bool {
		left[value]--
		return left[value] < 0
	})
	for i, line := range sent {
		if !replaced[i] {
			ordered = append(ordered, line)
		} else if len(unsent) > 0 {
			ordered, unsent = append(ordered, unsent[0]), unsent[1:]
		}
	}
	if trailers {
		return ordered
	}
	return append(ordered, unsent...)
}

// linesOf returns the values of a header's lines in the block of headers as it was sent. A line that
// begins with white space continues the one before it.
func linesOf(raw []byte, name string) (values []string) {
	var ours bool // the line before is the header's
	for line := range bytes.Lines(raw) {
		continues := line[0] == ' ' || line[0] == '\t'
		switch key, value, _ := bytes.Cut(line, []byte(":")); {
		case continues && ours:
			values[len(values)-1] += " " + string(bytes.Trim(line, " \t\r\n"))
		case !continues:
			if ours = strings.EqualFold(string(bytes.TrimRight(key, " \t")), name); ours {
				values = append(values, string(bytes.Trim(value, " \t\r\n")))
			}
		}
	}
	return values
}
