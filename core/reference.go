package core

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/accesslimit/accesslimit/core/internal/reference"
)

// references makes the references of refusals.
type references struct{ keys reference.Keys } // none unless refusals have references

// of returns the text of the reference of a refusal by a decision, or "" if there are no keys. The
// caller was told to wait for so long.
func (s references) of(d *Decision, wait time.Duration) string {
	if len(s.keys) == 0 {
		return ""
	}
	return s.keys.Seal(&reference.Content{
		Time: time.Now().UnixMicro(), Reason: reference.NumberOf(string(d.Reason)), Remaining: int64(d.Remaining),
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
