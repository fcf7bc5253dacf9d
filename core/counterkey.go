package core

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// The Redis key of a counter is
//
//	PREFIX:{SUBJECT}:NAME:ALGORITHM+LAYOUT:WINDOW
//	accesslimit:{user:alice}:reply:sw1:60000000
//
// with the window in microseconds, or the name of a calendar. All limits of one subject share a cluster slot, and one script can decide over them.
// Subject and name are escaped, so that no two counters share a key and nothing that a caller sends ends the braces or
// chooses the slot; longer than 64 bytes they are replaced by # and 128 bits of their SHA-256. No key is over 200 bytes:
// see bounded.
const (
	maxPrefix  = 40
	maxKeyPart = 64
	maxKey     = 200
)

// keyHead is what every key of a limiter starts with.
func keyHead(prefix string) string { return prefix + ":{" }

// appendHead appends what a key starts with, up to and including the subject.
func appendHead[T string | []byte](dst []byte, head string, subject T) []byte {
	return appendEscaped(append(dst, head...), subject)
}

// appendKey returns the key of a counter, written into room.
func appendKey[T string | []byte](room []byte, head string, subject T, tail string) []byte {
	return bounded(append(appendHead(room, head, subject), tail...))
}

// bounded returns the key, shortened if it is longer than a key may be.
func bounded(key []byte) []byte {
	if len(key) > maxKey {
		return shortened(key)
	}
	return key
}

// shortened replaces the name by a hash, which is shorter. Only rules in DryRun with the longest
// prefixes, subjects and names of a zone need this. It was added when other keys were in use, so it
// does not change those. No other name begins with ##.
func shortened(key []byte) []byte {
	start := bytes.IndexByte(key, '}') + len("}:")
	end := bytes.LastIndexByte(key, ':') // before the window
	end = bytes.LastIndexByte(key[:end], ':')
	name := bytes.TrimSuffix(key[start:end], []byte(dryMark))
	tail := string(key[start+len(name):])
	sum := sha256.Sum256(name)
	key = hex.AppendEncode(append(key[:start], "##"...), sum[:16])
	return append(key, tail...)
}

// appendTail appends what follows the subject in every key of a name and a limit.
func appendTail(dst []byte, name string, limit *algorithm.Limit) []byte {
	return appendLimit(appendName(dst, name), limit)
}

func appendName(dst []byte, name string) []byte { return appendEscaped(append(dst, "}:"...), name) }

// dryMark follows the name in the keys of a rule that is only tried: its counters are its own, or it would charge those of the
// rule that it is tried beside. No name can end in it, because a % stands before two hex digits there.
const dryMark = "%dry"

func appendLimit(dst []byte, limit *algorithm.Limit) []byte {
	dst = append(append(dst, ':'), limit.Kind.Tag()...)
	window, calendar := limit.Spell()
	dst = append(dst, ':')
	if calendar != "" {
		return append(dst, calendar...)
	}
	return strconv.AppendInt(dst, window, 10)
}

// appendBan ends the key of a ban, which has no window.
func appendBan(dst []byte) []byte {
	return append(append(append(dst, ':'), algorithm.Ban.Tag()...), ":0"...)
}

// appendEscaped appends a part of a key: what is unsafe as %XX, or all of it as its hash where that would be too long. Nearly all
// parts are short and safe, and copied as they are.
func appendEscaped[T string | []byte](dst []byte, part T) []byte {
	if len(part) > maxKeyPart {
		return appendHash(dst, part)
	}
	for i := range len(part) {
		if unsafeInKey[part[i]] {
			return escapeFrom(dst, part, i)
		}
	}
	return append(dst, part...)
}

// escapeFrom appends a part whose first unsafe byte is at i.
func escapeFrom[T string | []byte](dst []byte, part T, i int) []byte {
	const digits = "0123456789ABCDEF"
	start := len(dst)
	dst = append(dst, part[:i]...)
	for ; i < len(part); i++ {
		if c := part[i]; unsafeInKey[c] {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	if len(dst)-start > maxKeyPart {
		return appendHash(dst[:start], part)
	}
	return dst
}

func appendHash[T string | []byte](dst []byte, part T) []byte {
	sum := sha256.Sum256([]byte(part))
	return hex.AppendEncode(append(dst, '#'), sum[:16])
}

// unsafeInKey is all but printable ASCII, and of that what has a meaning in a key (braces, the escape, the mark of a hash) or a
// shell.
var unsafeInKey = func() (unsafe [256]bool) {
	for c := range unsafe {
		unsafe[c] = c <= 0x20 || c >= 0x7f
	}
	for _, c := range []byte("{}%#\"'\\`$") {
		unsafe[c] = true
	}
	return unsafe
}()
