// Package fleetrules keeps the rules of a fleet of processes in one value of Redis, with a version, an
// author, a note and a time.
//
// The value is a string: a head, a line about the author, and the text of the rules.
//
//	rd1 7 1795209600123456 5e884898da28047151d0e56f8dc62927\n
//	{"author":"alice","note":"contract 17"}\n
//	version: 1
//	rules:
//	...
//
// The head is the form, the number of the version, the time when it was written by Redis's clock in
// microseconds, and 128 bits of the SHA-256 of all that follows the head. It comes first so that a
// process that polls reads only the head, with GETRANGE, whatever somebody has written there. A
// Redis hash would need a script, because HMGET cannot bound what it reads. A publish/subscribe
// message can be lost, so a process would have to poll anyway.
package fleetrules

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/actor"
)

// The bounds of a document, in bytes.
const (
	// MaxText is the length of the longest text.
	MaxText = 1 << 20
	// maxHead is more than the length of the longest head: the form, two numbers, and the sum.
	maxHead = 96
	// maxAbout is the length of the longest line about the author. JSON takes at most six bytes for
	// each byte of a text.
	maxAbout = 2*6*actor.MaxLen + 64
	maxValue = maxHead + maxAbout + MaxText
	sumBytes = 16
)

// form names the layout of the value. A release with another layout must change it.
const form = "rd1"

// maxNumber is below 2^53, up to which numbers in Lua are exact.
const maxNumber = 9e15

// Doc is one version of the rules.
type Doc struct {
	Head
	Author, Note string
	Text         string
}

// Head identifies a version by its number and its time, which never decreases: after a failover,
// two versions can have the same number. The zero Head stands for a document that does not exist.
type Head struct {
	Number int64  // 1, 2, ...
	At     int64  // when it was written, in microseconds since the epoch
	Sum    string // of what follows the head
}

// Time returns when the version was written.
func (h Head) Time() time.Time { return time.UnixMicro(h.At).UTC() }

// String returns the number and the time, such as 7@2026-11-22T16:00:00.123456Z. The number alone
// does not identify a version, because numbers begin again when a document is lost. For the zero
// Head, String returns "".
func (h Head) String() string {
	if h.Number == 0 {
		return ""
	}
	return fmt.Sprintf("%d@%s", h.Number, h.Time().Format("2006-01-02T15:04:05.000000Z"))
}

// Follows reports whether this version was written later than another one, so that a process moves
// from the other to this one. Numbers cannot tell: after a loss, numbering restarts at 1, and a
// restored document may have a greater number.
func (h Head) Follows(other Head) bool { return h.At > other.At }

// about is the line about the author.
type about struct {
	Author string `json:"author"`
	Note   string `json:"note"`
}

// body returns what follows the head, and its sum.
func body(author, note, text string) (rest, sum string) {
	line, _ := json.Marshal(about{author, note}) // two texts can always be encoded
	rest = string(line) + "\n" + text
	return rest, sumOf(rest)
}

func sumOf(rest string) string {
	sum := sha256.Sum256([]byte(rest))
	return hex.EncodeToString(sum[:sumBytes])
}

// parseHead returns the head at the beginning of a value, and what follows it.
func parseHead(value string) (head Head, rest string, err error) {
	line, _, complete := strings.Cut(value[:min(len(value), maxHead)], "\n")
	fields := strings.Split(line, " ")
	if !complete || len(fields) != 4 || fields[0] != form {
		return Head{}, "", explain(fields[0])
	}
	number, err1 := parseNumber(fields[1])
	at, err2 := parseNumber(fields[2])
	if sum, err := hex.DecodeString(fields[3]); err1 != nil || err2 != nil || err != nil || len(sum) != sumBytes {
		return Head{}, "", errors.New("its first line cannot be read")
	}
	return Head{number, at, fields[3]}, value[len(line)+1:], nil
}

// explain returns what is wrong with a value that has no head of this form.
func explain(first string) error {
	if digits, ok := strings.CutPrefix(first, "rd"); ok && first != form {
		if _, err := strconv.ParseUint(digits, 10, 16); err == nil {
			return fmt.Errorf("it has the form %s, of another release, and this release reads %s", first, form)
		}
	}
	return errors.New("it was not written by this library")
}

// parseNumber reads a number as the script writes it.
func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > maxNumber || strconv.FormatInt(n, 10) != text {
		return 0, errors.New("is not a valid number")
	}
	return n, nil
}

// parse reads a value.
func parse(value string) (doc Doc, err error) {
	head, rest, err := parseHead(value)
	if err != nil {
		return Doc{}, err
	}
	if len(value) > maxValue {
		return Doc{}, fmt.Errorf("it has more than %d bytes", maxValue)
	}
	if sumOf(rest) != head.Sum {
		return Doc{}, errors.New("its checksum is wrong: it was changed by hand")
	}
	by, text, err := parseAbout(rest)
	if err != nil {
		return Doc{}, err
	}
	return Doc{head, by.Author, by.Note, text}, nil
}

// parseAbout reads the line about the author, and returns the text behind it.
func parseAbout(rest string) (by about, text string, err error) {
	line, _, complete := strings.Cut(rest[:min(len(rest), maxAbout)], "\n")
	if !complete {
		return by, "", errors.New("it has no line about its author")
	}
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&by); err != nil || decoder.More() {
		return by, "", errors.New("its line about its author is not one that this release knows")
	}
	return about{actor.Cut(by.Author), actor.Cut(by.Note)}, rest[len(line)+1:], nil
}
