package reference

import (
	"encoding/base32"
	"errors"
	"fmt"
	"unicode"
)

// crockford is the alphabet of https://www.crockford.com/base32.html.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

const (
	group    = 8 // characters, for five bytes
	minChars = (minSize + 4) / 5 * group
	maxChars = (maxSize + 4) / 5 * group
	maxInput = 3 * maxChars // with spaces and hyphens
)

// encode returns bytes, a multiple of five, as text.
func encode(b []byte) string {
	text := make([]byte, 0, maxChars+maxChars/group)
	for i := 0; i < len(b); i += 5 {
		if i > 0 {
			text = append(text, '-')
		}
		text = crockford.AppendEncode(text, b[i:i+5])
	}
	return string(text)
}

var errLength = errors.New("is not as long as a reference: perhaps some of it is missing")

// decode returns the bytes of a text, as people type it: in any case, with any spaces and hyphens,
// and with the letters O, I and L for the digits 0, 1 and 1.
func decode(text string) ([]byte, error) {
	if len(text) > maxInput {
		return nil, errLength
	}
	chars := make([]byte, 0, maxChars)
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.Is(unicode.Dash, r) {
			continue
		}
		c, ok := plain(r)
		if !ok {
			return nil, fmt.Errorf("is not a reference: %q cannot be in one", r)
		}
		chars = append(chars, c)
	}
	if len(chars) < minChars || len(chars) > maxChars || len(chars)%group != 0 {
		return nil, errLength
	}
	b := make([]byte, len(chars)/group*5)
	_, err := crockford.Decode(b, chars)
	return b, err
}

// plain returns the character of the alphabet that r stands for.
func plain(r rune) (c byte, ok bool) {
	if 'a' <= r && r <= 'z' {
		r -= 'a' - 'A'
	}
	switch {
	case r == 'O':
		return '0', true
	case r == 'I' || r == 'L':
		return '1', true
	case '0' <= r && r <= '9', 'A' <= r && r <= 'Z' && r != 'U':
		return byte(r), true
	default:
		return 0, false
	}
}
