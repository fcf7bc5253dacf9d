package rediskey_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// counter holds what distinguishes a counter from all others.
type counter struct {
	subject, name string
	dry           bool
	kind          algorithm.Kind // Pausing has no limit
	window        int64          // microseconds
	calendar      string         // in place of a window
}

var calendars = [...]string{"dUTC", "dEurope/Berlin", "mEurope/Berlin", "m#" + strings.Repeat("5", 20)}

// newCounter makes a counter from any numbers. kind chooses the algorithm and whether the counter
// is that of a rule in DryRun.
func newCounter(subject, name string, kind byte, window int64) counter {
	c := counter{subject: subject, name: name, dry: kind&16 != 0, kind: algorithm.Kind(kind % 16)}
	switch {
	case c.kind == algorithm.CalendarWindow:
		c.calendar = calendars[uint64(window)%uint64(len(calendars))]
	case c.kind < algorithm.Pausing:
		c.window = 1000 + int64(uint64(window)%(algorithm.MaxWindow-999))
	default:
		c.kind, c.dry = algorithm.Pausing, false
	}
	return c
}

// prefix is as long as a prefix may be, or no key would come near its 200 bytes.
var prefix = strings.Repeat("p", rediskey.MaxPrefix)

// key returns the key of c, and whether both ways to form it agree.
func (c counter) key() (key string, agree bool) {
	head := rediskey.Head(prefix)
	if c.kind == algorithm.Pausing {
		return string(rediskey.Append(nil, head, c.subject, rediskey.PauseTail(c.name))), true
	}
	limit := c.limit()
	key = string(rediskey.Append(nil, head, []byte(c.subject), rediskey.LimitTail(c.name, c.dry, limit)))
	return key, key == string(rediskey.AppendLimit(nil, head, c.subject, c.name, c.dry, limit))
}

func (c counter) limit() *algorithm.Limit {
	limit := algorithm.Windowed(c.kind, 1, c.window)
	if c.calendar != "" {
		limit = algorithm.InCalendar(1, algorithm.NewCalendar(c.calendar, time.UTC, false))
	}
	return &limit
}

// slowly returns the key of c as the documentation describes it.
func (c counter) slowly() string {
	head, name, tail := prefix+":{"+escapedSlowly(c.subject)+"}:", escapedSlowly(c.name), ":"+c.kind.Tag()+":"
	if c.dry {
		tail = "%dry" + tail
	}
	if c.calendar != "" {
		tail += c.calendar
	} else {
		tail += fmt.Sprint(c.window)
	}
	if len(head+name+tail) > 200 {
		name = "##" + digest(name)
	}
	return head + name + tail
}

// escapedSlowly returns a subject or a name as it appears in keys.
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
		return "#" + digest(part)
	}
	return text.String()
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:32] }

// form is that of every key: printable ASCII with one pair of braces. It captures the hash tag.
var form = regexp.MustCompile(`^[!-z|~]+:\{([!-z|~]+)\}:[!-z|~]+$`)

func checked(t *testing.T, c counter) (key, tag string) {
	t.Helper()
	key, agree := c.key()
	if want := c.slowly(); key != want || !agree {
		t.Errorf("%+v is %s, want %s; AppendLimit agrees: %v", c, key, want, agree)
	}
	match := form.FindStringSubmatch(key)
	if match == nil || len(key) > 200 {
		t.Fatalf("%+v has a key of another form, with %d bytes: %q", c, len(key), key)
	}
	return key, match[1]
}

// No notice has the key of a counter, of another notice, or of another subject or name.
func TestNotices(t *testing.T) {
	seen := make(map[string]string)
	add := func(key []byte, of string) {
		t.Helper()
		if match := form.FindSubmatch(key); match == nil || len(key) > 200 {
			t.Errorf("%s has a key of another form, with %d bytes: %q", of, len(key), key)
		}
		if other, taken := seen[string(key)]; taken {
			t.Errorf("%s and %s share the key %s", of, other, key)
		}
		seen[string(key)] = of
	}
	long, zone := strings.Repeat("n", 64), algorithm.InCalendar(1, algorithm.NewCalendar(calendars[3], time.UTC, false))
	hour := algorithm.Windowed(algorithm.SlidingWindow, 1, 3600e6)
	for _, subject := range []string{"s", strings.Repeat("s", 64), "s%n2-1", "}"} {
		for _, name := range []string{"n", "n%n2-1", "n%n2-0.5", "n%dry", long, long[1:], long + "n"} {
			for _, limit := range []*algorithm.Limit{&hour, &zone} {
				for _, dry := range []bool{false, true} {
					of := fmt.Sprint(subject, name, limit.Span(), dry)
					add(rediskey.Append(nil, rediskey.Head(prefix), subject, rediskey.LimitTail(name, dry, limit)), of)
					for _, fraction := range []float64{1, 0.5, 0.8, 1. / 3, 2. / 3, 1e-5, math.SmallestNonzeroFloat64, 0.30000000000000004} {
						add(rediskey.Append(nil, rediskey.Head(prefix), subject, rediskey.NoticeTail(name, dry, limit, fraction)), fmt.Sprint(of, fraction))
					}
				}
			}
		}
	}
}

// FuzzKey checks that a key is what its documentation says, and that two counters never share one:
// not two subjects, names, algorithms, windows or calendars, nor a rule and one in DryRun, nor a
// pause. The subject alone chooses the hash tag.
func FuzzKey(f *testing.F) {
	add := func(subjectA, nameA, subjectB, nameB string) {
		f.Add(subjectA, nameA, byte(algorithm.SlidingWindow), int64(60e6), subjectB, nameB, byte(algorithm.SlidingWindow), int64(60e6))
	}
	add("user:alice", "reply", "user:bob", "reply")
	add("a}:b", "c", "a", "b}:c")
	add("%7D", "n", "}", "n")
	add(strings.Repeat("x", 65), "n", "#"+digest(strings.Repeat("x", 65)), "n")
	add("s", "a:sw1:60000000", "s", "a")
	add("\xff\x00", "{", "\xff", "\x00{")
	for kind := range byte(32) {
		f.Add("s", "n", kind, int64(2), "s", "n", kind^16, int64(2))
		f.Add("s", "n", kind, int64(2), "s", "n", kind^1, int64(2))
		f.Add("s", "n", kind, int64(60e6), "s", "n:sw1", kind, int64(3))
		f.Add("s", "n%dry", kind, int64(60e6), "s", "n", kind, int64(-1))
	}
	const dryCalendar = 16 + byte(algorithm.CalendarWindow)
	// With the longest calendar, the key of a rule in DryRun has 200 bytes, then 201.
	for n := 61; n < 64; n++ {
		f.Add(strings.Repeat("s", 64), strings.Repeat("n", n), dryCalendar, int64(3), strings.Repeat("s", 64), strings.Repeat("n", n+1), dryCalendar, int64(3))
	}
	f.Fuzz(func(t *testing.T, subjectA, nameA string, kindA byte, windowA int64, subjectB, nameB string, kindB byte, windowB int64) {
		if subjectA == "" || subjectB == "" || nameA == "" || nameB == "" {
			return // refused before a key is formed
		}
		a, b := newCounter(subjectA, nameA, kindA, windowA), newCounter(subjectB, nameB, kindB, windowB)
		keyA, tagA := checked(t, a)
		keyB, tagB := checked(t, b)
		if (keyA == keyB) != (a == b) {
			t.Errorf("%+v is %s, %+v is %s", a, keyA, b, keyB)
		}
		if (tagA == tagB) != (subjectA == subjectB) {
			t.Errorf("%q has the tag %s, %q has %s", subjectA, tagA, subjectB, tagB)
		}
	})
}

// part draws a subject or a name: any bytes, mostly safe ones, of about the length from which it is
// hashed.
func part() *rapid.Generator[string] {
	any, safe := rapid.Byte(), rapid.ByteRange('a', 'z')
	return rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.OneOf(safe, safe, safe, any), 1, 70).Draw(t, "part"))
	})
}

func TestEscaping(t *testing.T) {
	escaped := func(part string) string { return string(rediskey.Append(nil, "", part, "")) }
	for c := range 256 {
		for _, part := range []string{string([]byte{byte(c)}), "a" + string([]byte{byte(c)}), string([]byte{byte(c)}) + "a"} {
			if got, want := escaped(part), escapedSlowly(part); got != want {
				t.Errorf("%q is %q, want %q", part, got, want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := part().Draw(t, "a"), part().Draw(t, "b")
		if got, want := escaped(a), escapedSlowly(a); got != want {
			t.Errorf("%q is %q, want %q", a, got, want)
		}
		if (a == b) != (escaped(a) == escaped(b)) {
			t.Errorf("%q and %q are both %q", a, b, escaped(a))
		}
	})
}

// The lists of all rules share a hash tag that no subject has, and no two rules share a list,
// whatever their names are.
func TestTopListsHaveKeysOfTheirOwn(t *testing.T) {
	head := rediskey.Head(strings.Repeat("p", rediskey.MaxPrefix))
	seen := map[string]string{rediskey.TopIndex(head): "the index"}
	for _, name := range []string{"", "all", "%all", "%25all", "ti1", "}", "}:api", "api", "api:tr1", strings.Repeat("n", 65), strings.Repeat("\xff", 1000)} {
		for _, tag := range []string{"tr1", "tn1"} {
			key := rediskey.TopList(head, name, tag, 1<<40)
			if other, ok := seen[key]; ok || len(key) > rediskey.MaxLen || !strings.HasPrefix(key, head+"%top}:") || strings.Count(key, "}") != 1 {
				t.Errorf("%q has the key %s of %q, with %d bytes", name, key, other, len(key))
			}
			seen[key] = name
		}
	}
	if key := string(rediskey.Append(nil, head, "%top", "}:x")); strings.HasPrefix(key, head+"%top}") {
		t.Errorf("a subject has the key %s", key)
	}
}
