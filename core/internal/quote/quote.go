// Package quote quotes texts that should not reach a terminal unchanged.
package quote

import (
	"strconv"
	"strings"
)

// Unprintable quotes a text that has control characters or bytes that are not UTF-8.
func Unprintable(text string) string {
	quoted := strconv.Quote(text)
	if quoted[1:len(quoted)-1] == text || strings.ReplaceAll(text, `"`, `\"`) == quoted[1:len(quoted)-1] {
		return text
	}
	return quoted
}
