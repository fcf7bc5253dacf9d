package core_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// escapedSlowly is what a part of a key is to be, byte by byte.
func escapedSlowly(part string) string {
	var text strings.Builder
	for i := range len(part) {
		switch c := part[i]; {
		case c > 0x20 && c < 0x7f && !strings.ContainsRune("{}%#\"'\\`$", rune(c)):
			text.WriteByte(c)
		default:
			fmt.Fprintf(&text, "%%%02X", c)
		}
	}
	if text.Len() > 64 {
		return "#" + core.Digest(part)
	}
	return text.String()
}

// keyPart draws a subject or a name: any bytes, mostly safe ones, around the length from which it is hashed.
func keyPart() *rapid.Generator[string] {
	any, safe := rapid.Byte(), rapid.ByteRange('a', 'z')
	return rapid.Custom(func(t *rapid.T) string {
		bytes := rapid.SliceOfN(rapid.OneOf(safe, safe, safe, any), 1, 70)
		return string(bytes.Draw(t, "part"))
	})
}

func TestEscapedKeyParts(t *testing.T) {
	for c := range 256 {
		for _, part := range []string{string([]byte{byte(c)}), "a" + string([]byte{byte(c)}), string([]byte{byte(c)}) + "a"} {
			if got, want := core.EscapedKeyPart(part), escapedSlowly(part); got != want {
				t.Errorf("%q is %q, want %q", part, got, want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := keyPart().Draw(t, "a"), keyPart().Draw(t, "b")
		if got, want := core.EscapedKeyPart(a), escapedSlowly(a); got != want {
			t.Errorf("%q is %q, want %q", a, got, want)
		}
		if (a == b) != (core.EscapedKeyPart(a) == core.EscapedKeyPart(b)) {
			t.Errorf("%q and %q are both %q", a, b, core.EscapedKeyPart(a))
		}
	})
}

// The subject of a rule comes in bytes, that of a direct call in a string, and both are one counter's.
func TestRulesAndDirectCallsShareKeys(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	rapid.Check(t, func(t *rapid.T) {
		subject := "value:" + keyPart().Draw(t, "subject")
		name := string(bytes.Map(func(r rune) rune { return 'a' + r%26 }, []byte(keyPart().Draw(t, "name"))))
		if len(name) > 128 {
			name = name[:128]
		}
		before, err := limiter.MustCounter(name, core.PerHour(1e6)).Allow(background, subject)
		if err != nil {
			t.Fatal(err)
		}
		v := newView("GET", "/x")
		checkRule(limiter, v, core.Rule{Name: name, Seconds: 3600, MaxCount: 1e6}, subject)
		after, err := peek(limiter, background, name, subject, core.PerHour(1e6))
		if err != nil || after.Remaining != before.Remaining-1 {
			t.Fatalf("%d left after %d, %v", after.Remaining, before.Remaining, err)
		}
	})
}
