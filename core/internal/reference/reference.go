// Package reference writes what a refusal was about into a text that only the holders of a key can
// read. Nothing is stored: the text is the evidence.
//
// The text is Crockford's base32, in groups of eight, because people type it and read it aloud: it
// has no letters that look alike, and case, spaces and hyphens mean nothing in it. It stands for
// these bytes, a multiple of ten:
//
//	1      the version of this form
//	12     the synthetic IV
//	the rest, encrypted:
//	7      the time, in microseconds since the epoch
//	1      a random byte, so that the texts of equal refusals differ
//	8      the digest of the subject, or zeros if it is not known
//	1      the reason
//	5      the permits left
//	5      the wait in milliseconds, rounded up
//	1 + n  the limit in its text form
//	1 + n  the name of the rule
//	zeros
//
// Numbers are big-endian. Numbers and digests have fixed lengths, so the length of the text depends
// on the rule's name and the limit alone.
//
// The encryption has the construction of RFC 5297 (SIV), but with HMAC-SHA-256, cut to 96 bits, and
// AES-256 in counter mode: the MAC of version and content is both the tag and the IV. AES-GCM with
// a random nonce takes 28 bytes in place of 12, and a key wears out after 2^32 texts: at a million
// refusals a second, that is little more than an hour. If two refusals ever get the same IV here,
// their texts show how their contents differ, and nothing else.
package reference

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

const (
	version = 1

	ivSize     = 12
	head       = 1 + ivSize
	digestSize = 8
	fixed      = 8 + digestSize + 1 + 5 + 5 // what comes before the texts
	step       = 10
	maxText    = 64 // the longest limit, and the longest name
	minSize    = (head + fixed + 2 + step - 1) / step * step
	maxSize    = (head + fixed + 2*(1+maxText) + step - 1) / step * step
)

// Content is what a reference says.
type Content struct {
	Time      int64 // in microseconds since the epoch
	Digest    [digestSize]byte
	Reason    byte
	Remaining int64
	Wait      int64  // in milliseconds
	Limit     string // at most 64 bytes, and so is Rule; the rest is cut off
	Rule      string
}

// most is the largest number of five bytes.
const most = 1<<40 - 1

func (c *Content) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(c.Time)<<8|uint64(byte(rand.Uint32())))
	b = append(append(b, c.Digest[:]...), c.Reason)
	b = appendFive(appendFive(b, c.Remaining), c.Wait)
	return appendText(appendText(b, c.Limit), c.Rule)
}

func appendFive(b []byte, n int64) []byte {
	n = min(max(n, 0), most)
	return binary.BigEndian.AppendUint32(append(b, byte(n>>32)), uint32(n))
}

// appendText appends as much of a text as is kept, in whole characters.
func appendText(b []byte, text string) []byte {
	if len(text) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return append(append(b, byte(len(text))), text...)
}

// read reads what append has written, and reports whether it is that.
func (c *Content) read(b []byte) bool {
	if len(b) < fixed+2 {
		return false
	}
	c.Time = int64(binary.BigEndian.Uint64(b) >> 8)
	b = b[8:]
	b = b[copy(c.Digest[:], b):]
	c.Reason, c.Remaining, c.Wait = b[0], readFive(b[1:]), readFive(b[6:])
	limit, b, ok := readText(b[11:])
	if !ok {
		return false
	}
	rule, _, ok := readText(b)
	c.Limit, c.Rule = limit, rule
	return ok
}

func readFive(b []byte) int64 {
	return int64(b[0])<<32 | int64(binary.BigEndian.Uint32(b[1:]))
}

func readText(b []byte) (text string, rest []byte, ok bool) {
	if len(b) == 0 || int(b[0]) >= len(b) {
		return "", nil, false
	}
	end := 1 + int(b[0])
	return strings.ToValidUTF8(string(b[1:end]), "\uFFFD"), b[end:], true
}
