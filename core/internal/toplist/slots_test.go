package toplist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// add adds entries to a list, and checks that all were added.
func add(t *testing.T, slots Slots, list string, of kind, entries ...Entry) {
	t.Helper()
	if added, err := slots.Add(background, list, of, entries); added != len(entries) || err != nil {
		t.Fatalf("%d of %d added, %v", added, len(entries), err)
	}
}

// read returns the entries of a list in a number of minutes.
func read(t *testing.T, slots Slots, list string, of kind, minutes int) []Entry {
	t.Helper()
	m, err := slots.read(background, list, minutes)
	if err != nil || m.Odd {
		t.Fatalf("%+v, %v", m, err)
	}
	return merge(m.Slots[of], of)
}

// A list has what was added in its minutes, by the clock of the slots: refusals are added, and the
// highest share counts.
func TestSlots(t *testing.T) {
	onBothEngines(t, func(t *testing.T, slots Slots, set func(time.Time)) {
		start := time.Now().Add(3 * time.Hour).Truncate(time.Minute) // another clock than ours
		set(start)
		add(t, slots, "api", Refused, Entry{"a", 5}, Entry{"b", 1})
		set(start.Add(time.Minute - time.Microsecond))
		add(t, slots, "api", Refused, Entry{"a", 2})
		add(t, slots, "api", Near, Entry{"a", 0.9}, Entry{"b", 0.8})
		add(t, slots, "api", Near, Entry{"a", 0.85}, Entry{"b", 0.95})
		set(start.Add(time.Minute))
		add(t, slots, "api", Refused, Entry{"b", 8})
		for _, test := range []struct {
			list    string
			of      kind
			minutes int
			after   time.Duration
			want    []Entry
		}{
			{"api", Refused, 1, 0, []Entry{{"b", 9}, {"a", 7}}},
			{"api", Refused, 1, time.Minute, []Entry{{"b", 8}}},
			{"api", Refused, 10, time.Minute, []Entry{{"b", 9}, {"a", 7}}},
			{"api", Near, 1, 0, []Entry{{"b", 0.95}, {"a", 0.9}}},
			{"other", Refused, 60, 0, nil},
			{"", Refused, 60, 0, nil},
			{"api", Refused, 60, 59 * time.Minute, []Entry{{"b", 9}, {"a", 7}}},
			{"api", Refused, 60, 60 * time.Minute, []Entry{{"b", 8}}},
			{"api", Refused, 60, 61 * time.Minute, nil},
		} {
			set(start.Add(time.Minute + test.after))
			if got := read(t, slots, test.list, test.of, test.minutes); !slices.Equal(got, test.want) {
				t.Errorf("%+v: %v", test, got)
			}
			if m, _ := slots.read(background, test.list, test.minutes); !m.Since.Equal(start.Add(time.Minute + test.after - time.Duration(test.minutes)*time.Minute)) {
				t.Errorf("%+v: since %v", test, m.Since)
			}
		}
	})
}

// Both engines keep the same, whatever is added when.
func TestBothEnginesKeepTheSame(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	var now time.Time
	client := &clocked{UniversalClient: redistest.Start(t).Client(t)}
	engines := []Slots{&Memory{clock: func() time.Time { return now }}, newRedis(t, client)}
	random := rand.New(rand.NewPCG(seed, 0))
	now = time.Now()
	for range 150 {
		now = now.Add(time.Duration(random.Int64N(int64(time.Minute))))
		client.now = now
		list, of := []string{"api", "%all", ""}[random.IntN(3)], kind(random.IntN(int(kinds)))
		var entries []Entry
		for subject := range random.IntN(2 * lengths[Refused]) {
			number := float64(1 + random.IntN(9))
			if of == Near {
				number /= 10
			}
			entries = append(entries, Entry{fmt.Sprint(subject*random.IntN(3), string(rune(random.IntN(300)))), number})
		}
		var got [2][]Entry
		minutes := []int{1, 10, 60}[random.IntN(3)]
		for i, slots := range engines {
			add(t, slots, list, of, entries...)
			got[i] = read(t, slots, list, of, minutes)
		}
		if !slices.Equal(got[0], got[1]) {
			t.Fatalf("seed %d: %v in this process, %v in Redis", seed, got[0], got[1])
		}
	}
}

// A slot has at most 257 entries, those with the highest numbers, and is gone an hour later.
func TestSlotsAreBounded(t *testing.T) {
	client := redistest.Start(t).Client(t)
	slots := newRedis(t, client)
	var entries []Entry
	for i := range 1_000 {
		entries = append(entries, Entry{user(i), float64(1 + 20*i)})
	}
	add(t, slots, "api", Refused, entries...)
	now := time.Now().Unix() / 60
	var got []redis.Z
	for minute := now - 1; minute <= now; minute++ {
		got = append(got, client.ZRangeWithScores(background, slots.key("api", Refused, minute), 0, -1).Val()...)
	}
	// Of these numbers, the floor is below that of the 257th.
	if n := len(got); n != lengths[Refused] || got[n-1].Member != user(999) || got[n-256].Member != user(744) {
		t.Errorf("%d entries: %v", n, got)
	}
	for _, key := range client.Keys(background, "*").Val() {
		if left := client.TTL(background, key).Val(); !strings.HasPrefix(key, head+"%top}:") || left <= 60*time.Minute || left > 62*time.Minute {
			t.Errorf("%s lives for %v", key, left)
		}
	}
}

// At most 200 rules have lists. Another one has to wait until one was not written to for an hour.
func TestRulesWithListsAreBounded(t *testing.T) {
	client := &clocked{UniversalClient: redistest.Start(t).Client(t)}
	slots := newRedis(t, client)
	start := time.Now()
	client.now = start
	add(t, slots, all, Refused, Entry{"a", 1})
	for i := range maxRules {
		client.now = start.Add(time.Duration(i) * time.Minute / 10)
		add(t, slots, fmt.Sprint("rule", i), Refused, Entry{"a", 1})
	}
	if added, err := slots.Add(background, "other", Refused, []Entry{{"a", 1}}); added != 0 || err != ErrTooManyRules {
		t.Errorf("%d added, %v", added, err)
	}
	client.now = start.Add(20 * time.Minute)
	add(t, slots, all, Refused, Entry{"a", 1})
	add(t, slots, "rule0", Refused, Entry{"a", 1})
	client.now = start.Add(keptFor*time.Minute + time.Minute)
	add(t, slots, "other", Refused, Entry{"a", 1})
	if got := read(t, slots, "rule0", Refused, 60); len(got) != 1 {
		t.Errorf("the list of a rule that was written to later is %v", got)
	}
}

// Entries that no process of ours wrote are left out, and the others are read.
func TestForeignValuesInSlots(t *testing.T) {
	client := redistest.Start(t).Client(t)
	slots := newRedis(t, client)
	add(t, slots, "api", Refused, Entry{"a", 1})
	now := time.Now().Unix() / 60
	for i, command := range [][]any{
		{"zadd", slots.key("api", Refused, now-1), "1.5", "half"},
		{"zadd", slots.key("api", Refused, now-1), "-1", "negative"},
		{"zadd", slots.key("api", Refused, now-1), "inf", "infinite"},
		{"zadd", slots.key("api", Near, now-1), "1.5", "more"},
		{"set", slots.key("api", Refused, now-2), "text"},
		{"rpush", slots.key("api", Near, now-3), "list"},
	} {
		client.FlushAll(background)
		add(t, slots, "api", Refused, Entry{"a", 1})
		if err := client.Do(background, command...).Err(); err != nil {
			t.Fatal(err)
		}
		m, err := slots.read(background, "api", 10)
		if got := merge(m.Slots[Refused], Refused); err != nil || !m.Odd || !slices.Equal(got, []Entry{{"a", 1}}) {
			t.Errorf("%d: %v, odd %v, %v", i, got, m.Odd, err)
		}
	}
}
