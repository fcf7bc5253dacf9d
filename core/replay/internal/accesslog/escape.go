package accesslog

import (
	"cmp"
	"strconv"
	"strings"
)

// isEscaped reports whether a backslash at the end of text escapes what follows.
func isEscaped(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

// unescaped returns a value without the escapes that nginx and Apache write: \x22, \" and the like.
func unescaped(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		if c, ok := hexByte(text[i:]); ok {
			b.WriteByte(c)
			i += 2
			continue
		}
		b.WriteByte(cmp.Or(escapes[text[i]], text[i]))
	}
	return b.String()
}

// escapes has what a letter behind a backslash stands for. Any other character stands for itself.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', 'v': '\v'}

// hexByte reads x22.
func hexByte(text string) (c byte, ok bool) {
	if len(text) < 3 || text[0] != 'x' {
		return 0, false
	}
	n, err := strconv.ParseUint(text[1:3], 16, 8)
	return byte(n), err == nil
}
