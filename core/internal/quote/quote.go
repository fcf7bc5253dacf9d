// Package quote quotes texts that should not reach a terminal unchanged.
package quote

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Unprintable quotes a text that is not printable.
func Unprintable(text string) string {
	if Printable(text) {
		return text
	}
	return strconv.Quote(text)
}

// Printable reports whether a text has no control characters and no bytes that are not UTF-8.
func Printable(text string) bool {
	unprintable := func(r rune) bool { return !strconv.IsPrint(r) }
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable)
}
