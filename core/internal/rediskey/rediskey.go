// Package rediskey forms the Redis keys of counters:
//
//	PREFIX:{SUBJECT}:NAME:ALGORITHM+LAYOUT:WINDOW
//	accesslimit:{user:alice}:reply:sw2:60000000
//
// The window is in microseconds, or the name of a calendar: dEurope/Berlin or mEurope/Berlin for
// the days or months of a zone, with # and the first 20 hex digits of its SHA-256 in place of a
// zone that is longer than 21 bytes. All counters of one subject share a cluster slot, so one
// script can decide over them. Anybody can compute the slot of a subject: a secret in the hash tag
// would change every counter's key.
//
// Subject and name are escaped, so that no two counters share a key, and nothing that a caller sends
// ends the braces. Every byte outside of printable ASCII, the space, and each of { } % # " ' \ ` $ is
// written as % and two capital hex digits. A part that is then longer than 64 bytes is replaced by #
// and the first 32 hex digits, in lower case, of the SHA-256 of the unescaped part. If a key would be
// longer than 200 bytes, which can happen only in DryRun and for notices, its escaped NAME is replaced
// by ## and the first 32 hex digits of the SHA-256 of that NAME.
//
// A subject has these other keys beside its counters:
//
//	PREFIX:{SUBJECT}:NAME%n2-0.8:sw2:60000000     the notice that a fraction of a limit was reached
//	PREFIX:{SUBJECT}:NAME:ps1:0                   a pause of its calls that go out
//	PREFIX:{SUBJECT}:NAME%probe:cc1:10000000      the slot of the first call after a pause
//	PREFIX:{SUBJECT}:NAME:bl1:ID                  a bill
//	PREFIX:{SUBJECT}:NAME:on2:ID                  the record of a change that is made once
package rediskey

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

const (
	// DefaultPrefix is the prefix of services that choose none.
	DefaultPrefix = "accesslimit"
	// MaxPrefix is the length of the longest prefix.
	MaxPrefix = 40
	// MaxLen is the length of the longest key.
	MaxLen = 200
	// maxPart is the length of the longest subject or name that is not replaced by its hash.
	maxPart = 64
)

// dryMark follows the name in the keys of a rule in DryRun. Such a rule has counters of its own, so
// that it does not charge those of a live rule with the same name. No name ends in the mark,
// because in an escaped name two hex digits follow a %.
const dryMark = "%dry"

// noticeMark follows the name in the keys of notices, with a version and the fraction behind it.
const noticeMark = "%n2-"

// probeMark follows the name in the key of the slot for the first call after a pause.
const probeMark = "%probe"

// IsPrefix reports whether a text can be a prefix of keys. It must have at most 40 letters, digits
// and -._~:/@, so that it neither opens a brace nor needs an escape.
func IsPrefix(text string) bool {
	return len(text) <= MaxPrefix && !strings.ContainsFunc(text, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		return !letter && !('0' <= r && r <= '9') && !strings.ContainsRune("-._~:/@", r)
	})
}

// Head returns the beginning of every key with a prefix.
func Head(prefix string) string { return prefix + ":{" }

// LimitTail returns the part behind the subject in the keys of a name's counters under a limit.
func LimitTail(name string, dry bool, limit *algorithm.Limit) string {
	return string(appendLimitTail(nil, name, dry, limit))
}

// StrikeTail returns the end of the keys of a name's strikes.
func StrikeTail(name string, dry bool) string {
	return string(append(appendName(nil, name, dry), ":st1"...))
}

// PauseTail returns the end of the keys of a name's pauses, which have no window.
func PauseTail(name string) string { return LimitTail(name, false, &algorithm.PauseLimit) }

// PauseList returns the key under which the pauses of a name are listed. Its hash tag cannot belong
// to a subject, where two hex digits follow each %.
func PauseList(head, name string) string {
	return string(appendName([]byte(head+"%pauses"), name, false)) + ":pl1"
}

// NoticeTail returns the end of the keys of the notices that a fraction of a limit was reached. They
// lie beside the counter of the limit. No name contains the mark, because in an escaped name two hex
// digits follow a %.
func NoticeTail(name string, dry bool, limit *algorithm.Limit, fraction float64) string {
	tail := append(appendName(nil, name, false), noticeMark...)
	tail = strconv.AppendFloat(tail, fraction, 'g', -1, 64)
	if dry {
		tail = append(tail, dryMark...)
	}
	return string(append(append(tail, ':'), limit.Span()...))
}

// ProbeTail returns the end of the key of the slot that the first call after a pause takes. No name
// ends in the mark.
func ProbeTail(name string, slot *algorithm.Limit) string {
	tail := append(append(appendName(nil, name, false), probeMark...), ':')
	return string(append(tail, slot.Span()...))
}

// allRules stands for the name in the keys of the lists of all rules. No name is the same, because
// in an escaped name two hex digits follow a %.
const allRules = "%all"

// TopList returns the key of a rule's list of subjects for a minute since the epoch, or of the list
// of all rules if the name is empty. The hash tag of these keys cannot belong to a subject.
func TopList(head, name, tag string, minute int64) string {
	key := []byte(head + "%top")
	if name == "" {
		key = append(append(key, "}:"...), allRules...)
	} else {
		key = appendName(key, name, false)
	}
	return string(strconv.AppendInt(append(append(append(key, ':'), tag...), ':'), minute, 10))
}

// Mark returns a key of a server's mark: see redisstore. Its hash tag cannot belong to a subject,
// where two hex digits follow each %.
func Mark(head string, i int) string { return head + "%mark" + strconv.Itoa(i) + "}:mk1" }

// TopIndex returns the key under which the rules with such lists are listed.
func TopIndex(head string) string { return head + "%top}:ti1" }

// BillTail returns the part behind the subject in the keys of a name's bills, up to what distinguishes
// them.
func BillTail(name string) string {
	return string(append(append(appendName(nil, name, false), ':'), algorithm.BillTag...))
}

// Record returns the key of a new record of a change that is made once, beside a counter's key.
func Record(counter []byte) []byte {
	var id [12]byte
	rand.Read(id[:])                         // it never fails
	end := bytes.LastIndexByte(counter, ':') // before the window
	end = bytes.LastIndexByte(counter[:end], ':')
	key := append(append(slices.Clone(counter[:end+1]), algorithm.RecordTag...), ':')
	return base64.RawURLEncoding.AppendEncode(key, id[:])
}

// Append returns a key made from a head, a subject and a tail. It writes the key into room, which
// must be empty.
func Append[T string | []byte](room []byte, head string, subject T, tail string) []byte {
	key := append(room, head...)
	if plain(subject) {
		key = append(key, subject...)
	} else {
		key = escape(key, subject)
	}
	return shorten(append(key, tail...))
}

// Subject returns the subject of a key that Append made from a head and a tail. ok is false for
// other keys, and for a subject that is too long to be in its key.
func Subject(key, head, tail string) (subject string, ok bool) {
	escaped, ok := strings.CutPrefix(key, head)
	if !ok || strings.HasPrefix(escaped, "#") {
		return "", false
	}
	if escaped, ok = strings.CutSuffix(escaped, tail); !ok {
		return "", false
	}
	subject, err := url.PathUnescape(escaped) // whose %XX are the same
	return subject, err == nil && !strings.Contains(escaped, "}")
}

// AppendLimit is Append for a limit that is not known before the call. It does not make a string
// for the tail.
func AppendLimit[T string | []byte](room []byte, head string, subject T, name string, dry bool, limit *algorithm.Limit) []byte {
	return shorten(appendLimitTail(appendEscaped(append(room, head...), subject), name, dry, limit))
}

func appendLimitTail(dst []byte, name string, dry bool, limit *algorithm.Limit) []byte {
	return append(append(appendName(dst, name, dry), ':'), limit.Span()...)
}

func appendName(dst []byte, name string, dry bool) []byte {
	dst = appendEscaped(append(dst, "}:"...), name)
	if dry {
		dst = append(dst, dryMark...)
	}
	return dst
}

// shorten returns the key as it is, or with a hash in place of the name if the key is too long.
func shorten(key []byte) []byte {
	if len(key) > MaxLen {
		return hashName(key)
	}
	return key
}

// hashName replaces the name by a hash, which is shorter. Only notices with long keys need this,
// and rules in DryRun with the longest prefixes, subjects and zones. No other name begins with ##.
func hashName(key []byte) []byte {
	start := bytes.IndexByte(key, '}') + len("}:")
	end := bytes.LastIndexByte(key, ':') // before the window
	end = bytes.LastIndexByte(key[:end], ':')
	name := bytes.TrimSuffix(key[start:end], []byte(dryMark))
	tail := string(key[start+len(name):])
	sum := sha256.Sum256(name)
	key = hex.AppendEncode(append(key[:start], "##"...), sum[:16])
	return append(key, tail...)
}

// appendEscaped appends a subject or a name. Unsafe bytes become %XX. A part that is longer than
// maxPart becomes # and 128 bits of its SHA-256.
func appendEscaped[T string | []byte](dst []byte, part T) []byte {
	if plain(part) {
		return append(dst, part...)
	}
	return escape(dst, part)
}

// plain reports whether a part is short and needs no escape, like nearly all parts. It examines
// four bytes per branch, so that a key with a subject of 41 bytes takes 51 cycles instead of 61.
func plain[T string | []byte](part T) bool {
	if len(part) > maxPart {
		return false
	}
	found := byte(0)
	for ; len(part) >= 4; part = part[4:] {
		found |= mustEscape[part[0]] | mustEscape[part[1]] | mustEscape[part[2]] | mustEscape[part[3]]
	}
	for i := range len(part) {
		found |= mustEscape[part[i]]
	}
	return found == 0
}

// escape appends a part that is not plain.
func escape[T string | []byte](dst []byte, part T) []byte {
	const digits = "0123456789ABCDEF"
	if len(part) > maxPart {
		return appendHash(dst, part)
	}
	start := len(dst)
	for i := range len(part) {
		if c := part[i]; mustEscape[c] != 0 {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	if len(dst)-start > maxPart {
		return appendHash(dst[:start], part)
	}
	return dst
}

func appendHash[T string | []byte](dst []byte, part T) []byte {
	sum := sha256.Sum256([]byte(part))
	return hex.AppendEncode(append(dst, '#'), sum[:16])
}

// mustEscape is 1 for the bytes that are escaped: all bytes outside printable ASCII, the braces,
// the escape character, the mark of a hash, and the characters with a meaning in a shell.
var mustEscape = func() (unsafe [256]byte) {
	for c := range unsafe {
		if c <= 0x20 || c >= 0x7f || strings.ContainsRune("{}%#\"'\\`$", rune(c)) {
			unsafe[c] = 1
		}
	}
	return unsafe
}()
