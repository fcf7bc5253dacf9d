package core_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// nasty returns subjects and names that have broken keys somewhere.
func nasty() []string {
	long := strings.Repeat("l", 65)
	return []string{
		"a", "A", "a ", " a", "a:b", ":", ":::", "a:", ":a", "%", "%25", "%7B", "%3A", "#", "##", "{", "}", "{}", "}{", "{a}", "}:a", "a}:b",
		"\x00", "a\x00", "\x00a", "\xff", "\xff\xfe", "\xc3", "ä", "a\u0308", "\n", "\r\n", "\t", "\x7f", `"`, `'`, `\`, "`", "$", "*", "?", "[a]",
		"user:alice", "user:alice}:reply:sw1:60000000", "ip:2001:db8::/64", "sw1", "a:sw1:60000000", "60000000",
		long, long[:64], long + "l", strings.Repeat("%", 21), strings.Repeat("%", 22), strings.Repeat("%25", 21),
		"#" + core.Digest(long), core.Digest(long), "%23" + core.Digest(long), strings.Repeat("\x00", 1<<16), strings.Repeat("x", 1<<16),
	}
}

// checkKey checks a key's form: PREFIX:{SUBJECT}:NAME:ALGORITHM+LAYOUT:WINDOW.
func checkKey(t *testing.T, k string) (tag string) {
	t.Helper()
	if len(k) > 200 {
		t.Fatalf("%d bytes: %q", len(k), k)
	}
	if strings.Count(k, "{") != 1 || strings.Count(k, "}") != 1 {
		t.Fatalf("not one pair of braces: %q", k)
	}
	for i := range len(k) {
		if k[i] <= 0x20 || k[i] > 0x7e {
			t.Fatalf("byte %#x in %q", k[i], k)
		}
	}
	before, rest, _ := strings.Cut(k, "{")
	tag, after, ok := strings.Cut(rest, "}")
	if !ok || tag == "" || !strings.HasSuffix(before, ":") || !strings.HasPrefix(after, ":") {
		t.Fatalf("another form: %q", k)
	}
	return tag
}

func TestCounterKeyForm(t *testing.T) {
	year := core.Limit{Max: 1, Window: 366 * 24 * time.Hour, Algorithm: core.TokenBucket}
	for _, test := range []struct {
		prefix, subject, name string
		limit                 core.Limit
		want                  string
	}{
		{"accesslimit", "user:alice", "reply", core.PerMinute(5), "accesslimit:{user:alice}:reply:sw1:60000000"},
		{"p", "ip:2001:db8::/64", "GET /users/:id", core.Limit{Max: 1, Window: time.Millisecond, Algorithm: core.FixedWindow},
			"p:{ip:2001:db8::/64}:GET%20/users/:id:fw1:1000"},
		{"p", "}{%#", "a\x00", core.PerSecond(1).Bucket(2), "p:{%7D%7B%25%23}:a%00:tb3:1000000"},
		{"p", strings.Repeat("s", 64), strings.Repeat("n", 65), core.PerSecond(1),
			"p:{" + strings.Repeat("s", 64) + "}:#" + core.Digest(strings.Repeat("n", 65)) + ":sw1:1000000"},
		{strings.Repeat("p", 40), strings.Repeat("s", 64), strings.Repeat("n", 64), year,
			strings.Repeat("p", 40) + ":{" + strings.Repeat("s", 64) + "}:" + strings.Repeat("n", 64) + ":tb3:31622400000000"},
		{"p", "s", "n", core.PerCalendarDay(1, "Europe/Berlin"), "p:{s}:n:cw1:dEurope/Berlin"},
		{"p", "s", "n", core.PerCalendarMonth(1, "America/Argentina/Buenos_Aires"), "p:{s}:n:cw1:m#" + core.Digest("America/Argentina/Buenos_Aires")[:20]},
	} {
		got := core.CounterKey(test.prefix, test.subject, test.name, test.limit)
		if got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
		checkKey(t, got)
	}
}

func TestCounterKeysAreInjective(t *testing.T) {
	type counter struct{ subject, name string }
	seen, tags := make(map[string]counter), make(map[string]string)
	for _, subject := range nasty() {
		for _, name := range nasty() {
			k := core.CounterKey("accesslimit", subject, name, core.PerMinute(1))
			if other, ok := seen[k]; ok {
				t.Fatalf("%.80q and %.80q share the key %s", other, counter{subject, name}, k)
			}
			seen[k] = counter{subject, name}
			tag := checkKey(t, k)
			if known, ok := tags[subject]; ok && known != tag {
				t.Fatalf("the name chooses the slot of %.80q: %s and %s", subject, known, tag)
			}
			tags[subject] = tag
		}
	}
	slots := make(map[string]bool)
	for _, tag := range tags {
		slots[tag] = true
	}
	if len(slots) != len(nasty()) {
		t.Errorf("%d tags of %d subjects", len(slots), len(nasty()))
	}
}

// Another window or algorithm makes another counter. Another Max or Burst does not.
func TestWindowAndAlgorithmMakeAnotherCounter(t *testing.T) {
	second := core.PerSecond(5)
	for _, test := range []struct {
		name string
		a, b core.Limit
		same bool
	}{
		{"Max", second, core.PerSecond(6), true},
		{"Burst", second.Bucket(5), second.Bucket(6), true},
		{"Max of a bucket", second.Bucket(5), core.PerSecond(6).Bucket(5), true},
		{"Window", second, core.PerMinute(5), false},
		{"Window by a microsecond", second, core.Limit{Max: 5, Window: time.Second + time.Microsecond}, false},
		{"Algorithm", second, second.Bucket(5), false},
		{"fixed and sliding", second, core.Limit{Max: 5, Window: time.Second, Algorithm: core.FixedWindow}, false},
	} {
		if same := core.CounterKey("p", "s", "n", test.a) == core.CounterKey("p", "s", "n", test.b); same != test.same {
			t.Errorf("%s: the same key: %v", test.name, same)
		}
	}
}

// The subject of a rule comes as bytes, that of a handle as a string. Both find the same counter.
func TestRulesAndHandlesShareKeys(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	any, safe := rapid.Byte(), rapid.ByteRange('a', 'z')
	subjects, names := rapid.SliceOfN(rapid.OneOf(safe, safe, safe, any), 1, 70), rapid.StringOfN(rapid.RuneFrom([]rune("az:%{#")), 1, 70, 128)
	rapid.Check(t, func(t *rapid.T) {
		subject, name := "value:"+string(subjects.Draw(t, "subject")), names.Draw(t, "name")
		before, err := limiter.MustCounter(name, core.PerHour(1e6)).Allow(background, subject)
		if err != nil {
			t.Fatal(err)
		}
		checkRule(limiter, newView("GET", "/x"), core.Rule{Name: name, Seconds: 3600, MaxCount: 1e6}, subject)
		after, err := peek(limiter, background, name, subject, core.PerHour(1e6))
		if err != nil || after.Remaining != before.Remaining-1 {
			t.Fatalf("%d left after %d, %v", after.Remaining, before.Remaining, err)
		}
	})
}

// Redis has one key for each counter, and it is the documented one.
func TestKeysInRedis(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		options.Prefix = "own"
		limiter := newLimiter(t, options)
		want := make(map[string]bool)
		for i, subject := range nasty() {
			name := nasty()[len(nasty())-1-i]
			if d, err := limiter.MustCounter(name, core.PerHour(3)).Allow(background, subject); err != nil || d.Remaining != 2 || d.Key != subject {
				t.Fatalf("%.50q of %.50q: %v, %v", name, subject, d.Remaining, err)
			}
			want[core.CounterKey("own", subject, name, core.PerHour(3))] = true
		}
		if options.Redis == nil {
			return
		}
		keys := keysBesideMark(options.Redis)
		for _, k := range keys {
			if !want[k] {
				t.Errorf("an unexpected key: %s", k)
			}
		}
		if len(keys) != len(want) {
			t.Errorf("%d keys of %d counters", len(keys), len(want))
		}
	})
}
