package algorithm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Override is what an operator set for one subject in place of a rule's own limit. It is stored in
// one string, which only Go writes and override.lua reads, little-endian: I1 What, I7 Ends, I7 Set, I7
// Max, I7 Burst, I7 Permit, I7 Refill, I7 Tick, then Span and Author with a length of I1 before each,
// and Note with one of I2.
type Override struct {
	What OverrideKind
	Ends int64 // microseconds since the epoch; 0: it does not end by itself
	Set  int64 // when it was set, in microseconds since the epoch
	// Max and Burst are the numbers of the limit, as in Terms. They are 0 unless What is
	// OverrideLimit, and Burst is 0 unless the algorithm has one.
	Max, Burst int64
	// Of Rate, only Permit, Refill and Tick are used. The script takes them as they are.
	Rate
	Span         string // Limit.Span of the limit that it was made for
	Author, Note string
}

// OverrideKind says what an override does.
type OverrideKind uint8

// The kinds of overrides, by their numbers in the stored form.
const (
	OverrideLimit     OverrideKind = 1 // another Max, and Burst
	OverrideUnlimited OverrideKind = 2 // the rule neither counts nor refuses calls of the subject
	OverrideBlocked   OverrideKind = 3 // the rule refuses all calls of the subject
)

// The bounds of the texts in an override, in bytes.
const (
	MaxOverrideAuthor = 255
	MaxOverrideNote   = 1024
	// maxOverride is the length of the longest string that is an override.
	maxOverride = overrideHead + 1 + 255 + 1 + MaxOverrideAuthor + 2 + MaxOverrideNote
	// overrideHead is the length of the numbers at the beginning.
	overrideHead = 1 + 7*7
)

// never bounds the times that are stored, so that a double holds them exactly.
const never = 1 << 53

// LatestTime is above all times and positions that are stored.
const LatestTime = never

// The errors of overrides that are ignored.
var (
	ErrNoOverride   = errors.New("is not an override that this library wrote")
	ErrOverrideSpan = errors.New("was made for another window or algorithm")
)

// Span returns the algorithm and the window of the limit, as at the end of its counters' keys, or
// "" for a limit that has no counters.
func (l *Limit) Span() string {
	span, _ := l.span.(string)
	return span
}

// appendSpan appends ALGORITHM:WINDOW.
func (l *Limit) appendSpan(dst []byte) []byte {
	dst = append(append(dst, l.Kind.Tag()...), ':')
	if l.calendar != nil {
		return append(dst, l.calendar.Name...)
	}
	return strconv.AppendInt(dst, l.Window, 10)
}

// With returns the limit with other numbers. A limit without a burst ignores burst. The error says
// that the limit cannot be counted exactly.
func (l *Limit) With(maxPermits, burst int64) (Limit, error) {
	of := l.Properties()
	most := l.mostPermits()
	if maxPermits < 1 || maxPermits > most || of.Burst && (burst < 1 || burst > MaxPermits) {
		return Limit{}, fmt.Errorf("is not a number of 1 to %d", most)
	}
	return Make(l.Kind, Terms{Max: maxPermits, Burst: burst, Window: l.Window, Calendar: l.calendar})
}

// mostPermits returns the largest Max of the limit's algorithm.
func (l *Limit) mostPermits() int64 {
	if most := l.Properties().MaxPermits; most > 0 {
		return most
	}
	return MaxEntries
}

// Override returns an override that gives a subject these numbers in place of those of the limit.
// A burst of 0 is the Max. Ends, Set, Author and Note are the caller's to set.
func (l *Limit) Override(maxPermits, burst int64) (Override, error) {
	o := Override{What: OverrideLimit, Max: maxPermits, Span: l.Span()}
	if l.Properties().Burst {
		if o.Burst = burst; burst == 0 {
			o.Burst = maxPermits
		}
	}
	made, err := l.With(o.Max, o.Burst)
	if err != nil {
		return Override{}, err
	}
	o.Rate = made.stored()
	return o, nil
}

// madeFor reports whether the override was made for the algorithm and the window of a limit. The
// version of the algorithm's state does not matter.
func (o *Override) madeFor(l *Limit) bool {
	tag, window, _ := strings.Cut(o.Span, ":")
	ownTag, ownWindow, _ := strings.Cut(l.Span(), ":")
	return window == ownWindow && strings.TrimRight(tag, "0123456789") == strings.TrimRight(ownTag, "0123456789")
}

// stored returns the part of a rate that an override keeps. It follows from Max, but computing it
// in Lua would be another calculation on which Go and Lua must agree. Both check it, and that it is
// in lowest terms: in the state of a bucket, a rate in other units would be a different rate, and
// no script would read its part again.
func (l *Limit) stored() Rate { return Rate{Permit: l.Permit, Refill: l.Refill, Tick: l.Tick} }

// For returns the limit that the override gives its subject under a rule with the limit l, or nil
// if it is not an OverrideLimit. The limit is cached, and must not be changed. The error says why the
// override is ignored.
func (o *Override) For(l *Limit) (*Limit, error) {
	if o.What != OverrideLimit {
		return nil, nil
	}
	if !o.madeFor(l) {
		return nil, ErrOverrideSpan
	}
	if !l.Properties().Burst && o.Burst != 0 {
		return nil, ErrNoOverride
	}
	made := inForce(l, o.Max, o.Burst)
	if made == nil || made.stored() != o.Rate {
		return nil, ErrNoOverride
	}
	return made, nil
}

// Append appends the stored form. It returns an error if a text is too long.
func (o *Override) Append(dst []byte) ([]byte, error) {
	switch {
	case len(o.Author) > MaxOverrideAuthor:
		return nil, fmt.Errorf("the author has %d bytes, but at most %d are kept", len(o.Author), MaxOverrideAuthor)
	case len(o.Note) > MaxOverrideNote:
		return nil, fmt.Errorf("the note has %d bytes, but at most %d are kept", len(o.Note), MaxOverrideNote)
	case len(o.Span) > 255:
		return nil, ErrOverrideSpan
	}
	dst = append(dst, byte(o.What))
	for _, n := range [...]int64{o.Ends, o.Set, o.Max, o.Burst, o.Permit, o.Refill, o.Tick} {
		dst = appendNumber(dst, n)
	}
	dst = append(append(dst, byte(len(o.Span))), o.Span...)
	dst = append(append(dst, byte(len(o.Author))), o.Author...)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(o.Note)))
	return append(dst, o.Note...), nil
}

// appendNumber appends a number as struct.pack('<I7') does.
func appendNumber(dst []byte, n int64) []byte {
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], uint64(n))
	return append(dst, number[:7]...)
}

// ReadOverride reads the stored form. The error is ErrNoOverride if the text is not an override.
// [Override.For] checks whether the numbers suit a rule.
func ReadOverride(text string) (o Override, err error) {
	if len(text) <= overrideHead || len(text) > maxOverride {
		return Override{}, ErrNoOverride
	}
	o.What = OverrideKind(text[0])
	for i, n := range [...]*int64{&o.Ends, &o.Set, &o.Max, &o.Burst, &o.Permit, &o.Refill, &o.Tick} {
		*n = littleEndian(text[1+7*i : 8+7*i])
	}
	rest := text[overrideHead:]
	ok := cutText(&o.Span, &rest, 1) && cutText(&o.Author, &rest, 1) && cutText(&o.Note, &rest, 2)
	if !ok || rest != "" || !o.sane() {
		return Override{}, ErrNoOverride
	}
	return o, nil
}

// cutText cuts a text off the front of rest. Before the text stands its length, in digits bytes.
// cutText reports false if rest is too short.
func cutText(text, rest *string, digits int) bool {
	if len(*rest) < digits {
		return false
	}
	end := digits + int(littleEndian((*rest)[:digits]))
	if len(*rest) < end {
		return false
	}
	*text, *rest = (*rest)[digits:end], (*rest)[end:]
	return true
}

// sane reports whether Append could have written these numbers.
func (o *Override) sane() bool {
	if o.Ends >= never || o.Set >= never || len(o.Note) > MaxOverrideNote {
		return false
	}
	numbers := o.Max != 0 || o.Burst != 0 || o.Rate != Rate{}
	switch o.What {
	case OverrideLimit:
		return o.Max >= 1 && o.Max <= MaxPermits && o.Burst <= MaxPermits
	case OverrideUnlimited, OverrideBlocked:
		return !numbers
	default:
		return false
	}
}
