package promise

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// KeysAreOpaque: whatever bytes are in names and subjects, no two of them share a counter. Keys in
// Redis are short and printable. Their only braces are the pair around the subject, which alone
// determines the cluster slot.
func KeysAreOpaque(t *testing.T, e Engine) {
	options := e.Options(t)
	limiter := newLimiter(t, options)
	rapid.Check(t, func(rt *rapid.T) {
		one := [2]string{parts.Draw(rt, "name"), parts.Draw(rt, "subject")}
		two := [2]string{parts.Draw(rt, "other name"), parts.Draw(rt, "other subject")}
		if rapid.Bool().Draw(rt, "same name") {
			two[0] = one[0]
		}
		if err := apart(limiter, one, two); err != nil {
			rt.Fatal(err)
		}
	})
	keys, err := keysOf(e.clients(t), options.Prefix)
	if err != nil || len(keys) == 0 && !e.inProcess() {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	plain := regexp.MustCompile(`^` + options.Prefix + `:\{[!-z|~]+\}:[!-z|~]+$`) // printable, but for braces
	for key := range keys {
		if len(key) > 200 || !plain.MatchString(key) {
			t.Errorf("%q is a key of %d bytes", key, len(key))
		}
	}
	e.keysAreNoSubjects(t)
}

// keysAreNoSubjects checks that a subject which looks like the key of a long name or subject is not
// taken for it.
func (e Engine) keysAreNoSubjects(t *testing.T) {
	options := e.Options(t)
	long := strings.Repeat("long", 50)
	c := counter{t: t, limiter: newLimiter(t, options), prefix: options.Prefix, name: long, subject: long, limit: core.PerDay(5)}
	c.mustTake(5)
	keys, err := keysOf(e.clients(t), options.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	for key := range keys {
		subject, rest, _ := strings.Cut(strings.TrimPrefix(key, options.Prefix+":{"), "}:")
		name, _, _ := strings.Cut(rest, ":")
		c.of(subject).wantLeft(5)
		c.name = name
		c.wantLeft(5)
		c.of(subject).wantLeft(5)
	}
}

// parts are names and subjects, especially those with a meaning in Redis, in our keys or in their
// escapes.
var parts = rapid.OneOf(
	rapid.StringOfN(rapid.SampledFrom([]rune("a:{}%#7 é\x00\n")), 1, 6, -1),
	rapid.StringN(1, 100, -1),
	rapid.SampledFrom([]string{
		"{}", "}", "{", "a}:b", "*", "%00", "\x00", "\xff\xfe", "user:alice", "user%3Aalice", "ip:192.0.2.1",
		strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 65) + "y", strings.Repeat("{", 5000),
		"#" + core.Digest(strings.Repeat("x", 65)), // as in the key of a long subject
	})).Filter(func(part string) bool { // an address is not a valid subject
	_, err := netip.ParseAddr(part)
	return err != nil
})

// apart checks that charging and resetting one counter does not change another.
func apart(limiter *core.Limiter, one, two [2]string) error {
	if one == two {
		return nil
	}
	ctx, limit := context.Background(), core.PerDay(5)
	for _, c := range [][2]string{one, two} {
		if _, err := limiter.MustCounter(c[0], limit).Reset(ctx, c[1]); err != nil {
			return err
		}
	}
	if d, err := limiter.MustCounter(one[0], limit).AllowN(ctx, one[1], 5); !d.Allowed {
		return fmt.Errorf("%q: %+v, %w", one, d, err)
	}
	if d, err := limiter.MustCounter(two[0], limit).Peek(ctx, two[1]); d.Remaining != 5 {
		return fmt.Errorf("%q was charged for %q: %+v, %w", two, one, d, err)
	}
	if _, err := limiter.MustCounter(two[0], limit).Reset(ctx, two[1]); err != nil {
		return err
	}
	if d, err := limiter.MustCounter(one[0], limit).Peek(ctx, one[1]); d.Remaining != 0 {
		return fmt.Errorf("%q was reset with %q: %+v, %w", one, two, d, err)
	}
	return nil
}
