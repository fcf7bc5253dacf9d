package toplist

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// If single rules can be written to and other rules never can, what waits for the list of all is
// bounded.
func TestWhatWaitsIsBounded(t *testing.T) {
	table, slots, _ := newScripted(t)
	slots.only, slots.err = "last", &failure.Error{Class: failure.Refused, Err: errors.New("OOM")}
	var rules []*Rule
	for i := range 30 {
		rules = append(rules, table.Rule(fmt.Sprint("rule", i)))
	}
	for range 10 {
		for _, r := range append(rules, table.Rule("last")) {
			for n := range maxEntries {
				r.NoteRefusal(1, []byte(user(n)))
			}
		}
		if table.Flush(); len(table.waiting[Refused].found) > 3*watched[Refused] {
			t.Fatalf("%d entries wait", len(table.waiting[Refused].found))
		}
	}
	if len(table.waiting[Refused].found) < maxEntries {
		t.Errorf("%d entries wait: the test shows nothing", len(table.waiting[Refused].found))
	}
}

// A flush is bounded, and the rules that it leaves out have their turn in the next one.
func TestAFlushIsBounded(t *testing.T) {
	table, slots, _ := newScripted(t)
	var rules [maxRules]*Rule
	for i := range rules {
		rules[i] = table.Rule(fmt.Sprint("rule", i))
	}
	for range maxRules * maxEntries / maxAdded {
		for _, r := range rules {
			for n := range maxEntries {
				r.NoteRefusal(1, []byte(user(n)))
			}
		}
		before := slots.adds
		table.Flush()
		if added := slots.adds - before; added > maxAdded/maxEntries+1 {
			t.Errorf("a flush made %d calls", added)
		}
	}
	for i := range rules {
		if m, _ := slots.read(background, fmt.Sprint("rule", i), 60); len(merge(m.Slots[Refused], Refused)) != maxEntries {
			t.Errorf("the list of rule %d is not complete", i)
		}
	}
}

// Ten million subjects in a minute, in more rules than have lists: the memory is bounded. When they
// stop, it is given back, and nothing runs.
func TestMemoryIsBounded(t *testing.T) {
	slots := &scripted{Memory: NewMemory(), only: "*", err: &failure.Error{Class: failure.Unreachable, Err: errors.New("down")}}
	table := New(slots, func(func()) {}, logFunc(func(error) {}))
	defer table.Close()
	clock := time.Duration(0)
	table.now = func() time.Duration { return clock }
	rules := make([]*Rule, maxRules+50)
	for i := range rules {
		rules[i] = table.Rule(fmt.Sprint("rule", i))
	}
	before := heap()
	long := strings.Repeat("x", 2*maxSubject)
	var number uint64
	for n := range 500 {
		clock += 120 * time.Millisecond
		for _, r := range rules {
			number++
			subject := []byte(fmt.Sprint(number, long))
			r.NoteRefusal(1, subject)
			r.NoteUse(0.8+float64(n%100)/1_000, subject)
		}
	}
	table.Flush() // which fails
	if len(table.active) != maxRules {
		t.Errorf("%d rules are active", len(table.active))
	}
	if used := heap() - before; used > 32<<20 || used < 10<<20 {
		t.Errorf("the sketches take %d bytes", used)
	} else {
		t.Logf("the sketches take %.1f MB", float64(used)/1e6)
	}
	slots.err = nil
	for range 30 {
		clock += 10 * time.Second
		table.Flush()
	}
	if len(table.active) != 0 || len(table.waiting[Refused].found) > 0 {
		t.Errorf("%d rules are active after a while", len(table.active))
	}
	if used := heap() - before; used > 24<<20 || slots.size > maxInMemory {
		t.Errorf("the lists take %d bytes for %d entries", used, slots.size)
	} else {
		t.Logf("the lists of %d entries take %.1f MB", slots.size, float64(used)/1e6)
	}
	runtime.KeepAlive(rules)
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Long subjects are cut, and stay different.
func TestLongSubjectsAreCut(t *testing.T) {
	table, _, _ := newScripted(t)
	r := table.Rule("api")
	for _, subject := range []string{strings.Repeat("é", 1000), strings.Repeat("é", 1001), strings.Repeat("\x80", 256), strings.Repeat("y", 255)} {
		r.NoteRefusal(1, []byte(subject))
		r.NoteUse(1, []byte(subject))
	}
	table.Flush()
	lists, err := Read(background, table, all, 1)
	if err != nil || len(lists.Refused) != 4 || len(lists.Near) != 4 {
		t.Fatalf("%v, %v", lists, err)
	}
	for _, e := range append(lists.Refused, lists.Near...) {
		if n := len(e.Subject); n > maxSubject || n < maxSubject-4 || strings.Contains(e.Subject, "...") != (e.Subject[0] != 'y') {
			t.Errorf("%d bytes: %q", n, e.Subject)
		}
	}
}
