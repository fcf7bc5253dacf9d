package reference

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, MinKey) }

var (
	first, second = New([][]byte{secret(1)}), New([][]byte{secret(2)})
	both          = New([][]byte{secret(2), secret(1)})
)

func drawContent(t *rapid.T) Content {
	return Content{
		Time: rapid.Int64Range(0, 1<<55).Draw(t, "time"), Reason: rapid.Byte().Draw(t, "reason"),
		Remaining: rapid.Int64Range(0, most).Draw(t, "remaining"), Wait: rapid.Int64Range(0, most).Draw(t, "wait"),
		Limit: rapid.StringN(0, -1, maxText).Draw(t, "limit"), Rule: rapid.StringN(0, -1, maxText).Draw(t, "rule"),
	}
}

// A reference is read back with its own key only, also as a person may have written it down. A text
// that differs in any character is not read.
func TestEveryReferenceIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, subject := drawContent(t), rapid.String().Draw(t, "subject")
		text := first.Seal(&want, subject)
		if (want.Digest == [digestSize]byte{}) != (subject == "") {
			t.Fatalf("the digest of %q is %x", subject, want.Digest)
		}
		for _, written := range []string{
			text, strings.ToLower(text), strings.ReplaceAll(text, "-", ""), " " + strings.ReplaceAll(text, "-", "\n"),
			strings.ReplaceAll(text, "-", "\u00a0\u2013"), strings.NewReplacer("0", "o", "1", "L").Replace(text), strings.ReplaceAll(text, "1", "i"),
		} {
			for _, keys := range []Keys{first, both} {
				got, by, err := keys.Open(written)
				if err != nil || got != want || by.Digest(subject) != first[0].Digest(subject) {
					t.Fatalf("%q: %+v, %v; want %+v", written, got, err, want)
				}
			}
		}
		if _, _, err := second.Open(text); err != errSealed {
			t.Fatalf("another key: %v", err)
		}
		i := rapid.IntRange(0, len(text)-1).Filter(func(i int) bool { return text[i] != '-' }).Draw(t, "changed at")
		to := rapid.SampledFrom([]byte("0123456789ABCDEFGHJKMNPQRSTVWXYZ")).Filter(func(c byte) bool { return c != text[i] }).Draw(t, "to")
		if _, _, err := both.Open(text[:i] + string(to) + text[i+1:]); err == nil {
			t.Fatalf("%q is read with %q at %d", text, to, i)
		}
		if _, _, err := both.Open(text[:i]); err == nil {
			t.Fatalf("%q is read without its end", text[:i])
		}
	})
}

// The length of a text, and the texts of equal refusals, tell nothing about the subject.
func TestWhatATextTells(t *testing.T) {
	c := Content{Limit: "5/m", Rule: "POST /reply"}
	texts := make(map[string]bool)
	for i, subject := range []string{"", "a", "ip:203.0.113.7", strings.Repeat("user:alice", 1000)} {
		c.Time, c.Remaining, c.Wait = int64(i)<<50, int64(i)<<37, int64(i)<<37
		for range 20 {
			texts[first.Seal(&c, subject)] = true
		}
	}
	if len(texts) != 80 {
		t.Errorf("80 references have %d texts", len(texts))
	}
	for text := range texts {
		if len(text) != 15*9-1 {
			t.Errorf("%q has %d characters", text, len(text))
		}
	}
	if first[0].Digest("user:alice") == second[0].Digest("user:alice") {
		t.Error("the digest does not depend on the key")
	}
}

// A text keeps its meaning from release to release.
func TestTheForm(t *testing.T) {
	const text = "04GQ2EA2-PSJB556Y-YER8773Z-YMAEZE96-V8DG066E-8KV5ZRE1-XCMW0DC7-ZEA7KJN2-HGXARYXC-PDAG98SG-ZSQ2RSSA-7QAAGQGR-3CMVY9Q1"
	want := Content{Time: 1795356187123456, Reason: 1, Remaining: 2, Wait: 12500, Limit: "5/m", Rule: "reply"}
	want.Digest = first[0].Digest("user:alice")
	if got, _, err := first.Open(text); err != nil || got != want || hex.EncodeToString(got.Digest[:]) != "033b3194528a8b0c" {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// Texts that are too long are cut, in whole characters.
func TestLongTextsAreCut(t *testing.T) {
	c := Content{Time: 1, Limit: strings.Repeat("9", 1000), Rule: strings.Repeat("9", maxText-1) + "ß", Remaining: 1 << 60, Wait: -1}
	text := first.Seal(&c, "s")
	got, _, err := first.Open(text)
	if err != nil || got.Limit != c.Limit[:maxText] || got.Rule != c.Rule[:maxText-1] || got.Remaining != most || got.Wait != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if want := maxChars + maxChars/group - 1; len(text) != want {
		t.Errorf("%d characters, want %d", len(text), want)
	}
}

// Whoever types nonsense is told what is wrong.
func TestNonsense(t *testing.T) {
	whole := first.Seal(&Content{}, "s")
	for _, test := range []struct{ text, want string }{
		{"", "as long as"},
		{"-", "as long as"},
		{whole[:9], "as long as"},
		{whole + whole[:7], "as long as"},
		{whole + whole[:8], "incomplete"},
		{strings.Repeat(whole, 9), "as long as"},
		{strings.Repeat(" ", 1_000_000), "as long as"},
		{"U" + whole[1:], `'U' cannot`},
		{"\xff" + whole[1:], "cannot"},
		{"ſ" + whole[1:], "cannot"},
		{"G" + whole[1:], "has the form 129"},
		{whole[:len(whole)-1] + "?", `'?' cannot`},
		{"0" + strings.Repeat("4", minChars-1), "was changed"},
	} {
		if _, _, err := first.Open(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.100q: %v, want %q", test.text, err, test.want)
		}
	}
}

// Nobody makes a reference without the key. Any bytes that a text may stand for have one text in
// capitals, and reading them is safe.
func FuzzOpen(f *testing.F) {
	f.Add(first.Seal(&Content{Time: 1, Reason: 1, Limit: "5/m", Rule: "api"}, "user:alice"))
	f.Add(second.Seal(&Content{}, ""))
	f.Add("  0-o")
	third := New([][]byte{secret(3)})
	f.Fuzz(func(t *testing.T, text string) {
		if c, _, err := third.Open(text); err == nil {
			t.Errorf("%q is read as %+v", text, c)
		}
		if b, err := decode(text); err == nil {
			again, err := decode(encode(b))
			if err != nil || !bytes.Equal(again, b) {
				t.Errorf("%q: %x, %v; want %x", text, again, err, b)
			}
			new(Content).read(b)
		}
		new(Content).read([]byte(text))
		c := Content{Limit: text, Rule: text}
		got, _, err := first.Open(first.Seal(&c, text))
		if err != nil || got.Digest != c.Digest || got.Rule != got.Limit || !strings.HasPrefix(strings.ToValidUTF8(text, "\uFFFD"), strings.TrimRight(got.Rule, "\uFFFD")) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	b.ReportAllocs()
	c := Content{Time: 1 << 50, Limit: "100/s", Rule: "POST /reply"}
	for b.Loop() {
		first.Seal(&c, "ip:203.0.113.7")
	}
}
