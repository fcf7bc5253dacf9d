package core

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/accesslimit/accesslimit/core/internal/reference"
)

// Reference describes a refusal. If Options.ReferenceKeys is set, a refusal carries it as an
// encrypted text, which [Limiter.ExplainReference] reads.
type Reference struct {
	// Time is when the call was refused, by the clock of the process that refused it.
	Time time.Time
	// Rule is the Decision's Rule, or the first 64 bytes of it.
	Rule string
	// Reason is why the call was refused.
	Reason Reason
	// Limit is the limit that decided.
	Limit Limit
	// Remaining is the number of permits that were left. It is 0 if no counter was asked.
	Remaining int
	// Wait is how long the caller was told to wait, rounded up to the millisecond, or 0.
	Wait time.Duration
	// Digest is a keyed digest of the subject in hex, or "" if the subject was not known. It is the
	// same in all references about one subject that were made with one key.
	Digest string

	key *reference.Key // what made the Digest
}

// About reports whether the reference is about this subject, such as user:alice or the result of
// [Limiter.IPSubject]. If the subject was not known, as when a login is missing, it is about
// nobody.
func (r Reference) About(subject string) bool {
	return r.key != nil && r.Digest != "" && r.Digest == digestText(r.key.Digest(subject))
}

func digestText(digest [8]byte) string { return hex.EncodeToString(digest[:]) }

// String returns the reference in words:
//
//	refused by "reply" at 2026-11-22T14:03:07.123456Z: limit_exceeded, 0 left of 5/m, wait 12.5s
func (r Reference) String() string {
	text := fmt.Appendf(nil, "refused by %q at %s: %s, ", r.Rule, r.Time.UTC().Format(time.RFC3339Nano), r.Reason)
	if r.Reason == LimitExceeded {
		text = fmt.Appendf(text, "%d left of ", r.Remaining)
	}
	text = append(text, r.Limit.String()...)
	if r.Wait > 0 {
		text = fmt.Appendf(text, ", wait %v", r.Wait)
	}
	return string(text)
}

// references makes and reads the references of refusals.
type references struct{ keys reference.Keys } // none unless refusals have references

// open is [Limiter.ExplainReference].
func (s references) open(text string) (Reference, error) {
	wrong := func(why string) (Reference, error) {
		return Reference{}, &RuleError{Field: "reference", Value: fmt.Sprintf("%.300s", text), Why: why}
	}
	if len(s.keys) == 0 {
		return wrong("cannot be read without Options.ReferenceKeys")
	}
	c, key, err := s.keys.Open(text)
	if err != nil {
		return wrong(err.Error())
	}
	limit, err := ParseLimit(c.Limit)
	if err != nil || int(c.Reason) >= len(referenceReasons) {
		return wrong("was made by a later version of the library, which knows more limits and reasons")
	}
	r := Reference{
		Time: time.UnixMicro(c.Time), Rule: c.Rule, Reason: referenceReasons[c.Reason], Limit: limit,
		Remaining: permitsOf(c.Remaining), Wait: time.Duration(c.Wait) * time.Millisecond, key: key,
	}
	if c.Digest != [8]byte{} {
		r.Digest = digestText(c.Digest)
	}
	return r, nil
}

// referenceReasons are the reasons of refusals. The index of each stands for it in references, and
// never changes its meaning.
var referenceReasons = [...]Reason{
	0: "", 1: LimitExceeded, 2: Banned, 3: NotLoggedIn, 4: IdentifyFailed, 5: StoreFailClosed, 6: ContextEnded, 7: CostTooHigh,
	8: Blocked,
}

// of returns the text of the reference of a refusal by a decision, or "" if there are no keys. The
// caller was told to wait for so long.
func (s references) of(d *Decision, wait time.Duration) string {
	if len(s.keys) == 0 {
		return ""
	}
	return s.keys.Seal(&reference.Content{
		Time: time.Now().UnixMicro(), Reason: byte(max(0, slices.Index(referenceReasons[:], d.Reason))), Remaining: int64(d.Remaining),
		Wait: int64((wait + time.Millisecond - 1) / time.Millisecond), Limit: d.Limit.String(), Rule: d.Rule,
	}, d.Key)
}

// ParseReferenceKeys reads keys for [Options].ReferenceKeys from a text, as an environment variable
// or a file holds them: in hex, as "openssl rand -hex 32" prints one, and separated by commas or
// white space. All processes, and the programs that read references, then have the same keys. An
// empty text has none. The error is a *[RuleError], and does not show the keys.
func ParseReferenceKeys(text string) ([][]byte, error) {
	var keys [][]byte
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		key, err := hex.DecodeString(word)
		if err != nil || len(key) < reference.MinKey {
			return nil, &RuleError{
				Field: "Options.ReferenceKeys", Value: fmt.Sprintf("key %d of %d characters", len(keys), len(word)),
				Why: fmt.Sprintf("must be at least %d hex digits, as \"openssl rand -hex 32\" prints them", 2*reference.MinKey),
			}
		}
		keys = append(keys, key)
	}
	return keys, checkReferenceKeys(keys)
}

// mostReferenceKeys bounds the keys, all of which may have to be tried to read a reference.
const mostReferenceKeys = 10

// checkReferenceKeys returns what is wrong with Options.ReferenceKeys, or nil. The error does not
// show the keys.
func checkReferenceKeys(keys [][]byte) error {
	wrong := func(value, why string) error {
		return &RuleError{Field: "Options.ReferenceKeys", Value: value, Why: why}
	}
	if len(keys) > mostReferenceKeys {
		return wrong(fmt.Sprintf("%d keys", len(keys)), fmt.Sprintf("must be at most %d", mostReferenceKeys))
	}
	for i, key := range keys {
		if len(key) < reference.MinKey {
			return wrong(fmt.Sprintf("key %d of %d bytes", i, len(key)), fmt.Sprintf("must be at least %d random bytes", reference.MinKey))
		}
	}
	return nil
}
