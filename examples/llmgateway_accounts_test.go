package examples_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// note is a line of a journal of llmgateway.
type note struct {
	Bill                             int
	Do                               string
	Permits                          int
	Counter, Subject, Token, Outcome string
}

// account is a bill as its journal shows it.
type account struct {
	note                // of its opening
	added, unknown int  // permits that were added, and how many further additions may have been made
	used           *int // what it was to be settled at, or nil
	settled        bool // the settlement was answered
}

// accounts are the bills of all processes.
type accounts []*account

// accounts reads the journals.
func (g *gateways) accounts() (all accounts) {
	for _, name := range g.journals {
		file, err := os.Open(name)
		if err != nil {
			g.Fatal(err)
		}
		bills := make(map[int]*account)
		var n note
		for notes := json.NewDecoder(file); notes.Decode(&n) == nil; n = (note{}) {
			if bills[n.Bill] == nil {
				bills[n.Bill] = new(account)
				all = append(all, bills[n.Bill])
			}
			bills[n.Bill].read(g.T, n)
		}
		_ = file.Close()
	}
	return all
}

// read reads a note about the bill.
func (a *account) read(t *testing.T, n note) {
	switch definite := n.Outcome != "" && n.Outcome != "unknown"; {
	case n.Do == "open":
		a.note = n
	case n.Do == "settle":
		a.used, a.settled = &n.Permits, n.Outcome == "done"
	case n.Outcome == "":
		a.unknown++
	case definite:
		a.unknown--
	}
	if n.Do == "add" && n.Outcome == "done" {
		a.added += n.Permits
	}
}

// compare compares what counters hold with the accounts, and returns what is wrong.
func (all accounts) compare(t *testing.T, rdb *redistest.Server) (wrong []string) {
	limiter := limitertest.New(t, core.Options{Redis: rdb.Client(t)})
	type counter struct{ name, subject string }
	sums, doubts := make(map[counter]int), make(map[counter][]int)
	kinds := make(map[string]int)
	for _, a := range all {
		of := counter{a.Counter, a.Subject}
		kinds[a.kind()]++
		switch a.kind() {
		case "refused":
		case "opened, perhaps":
			doubts[of] = append(doubts[of], a.Permits)
		default:
			sums[of] += a.charged(t, limiter)
		}
	}
	for _, kind := range []string{"settled", "refused", "never settled", "never settled, with additions"} {
		if kinds[kind] == 0 {
			wrong = append(wrong, "no bill was "+kind)
		}
	}
	for of, sum := range sums {
		if used := usedOf(t, limiter, of.name, of.subject); !explains(used-sum, doubts[of]) {
			wrong = append(wrong, fmt.Sprintf("%s of %s: %d used, want %d, and perhaps some of %v", of.name, of.subject, used, sum, doubts[of]))
		}
	}
	t.Logf("%d counters, and %d bills: %v", len(sums), len(all), kinds)
	return wrong
}

// kind returns what became of the bill.
func (a *account) kind() string {
	switch {
	case a.Outcome == "" || a.Outcome == "unknown":
		return "opened, perhaps"
	case a.Outcome != "done":
		return "refused"
	case a.settled:
		return "settled"
	case a.used != nil:
		return "settled, perhaps"
	case a.unknown > 0:
		return "added to, perhaps"
	case a.added > 0:
		return "never settled, with additions"
	}
	return "never settled"
}

// charged returns what the bill was charged. If that is not known, because a process was killed or an
// answer was lost, charged settles the bill, as any process could.
func (a *account) charged(t *testing.T, limiter *core.Limiter) int {
	charged := a.Permits + a.added
	if a.used != nil {
		charged = *a.used
	}
	if a.used != nil && !a.settled || a.unknown > 0 {
		bill, err := limiter.MustCounter(a.Counter, roomy(a.Counter)).Resume(a.Token)
		if err := cmp.Or(err, bill.Settle(context.Background(), charged)); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
	return charged
}

// roomy returns a limit that counts with the counter of this name, and of which not all is used.
func roomy(counter string) core.Limit {
	if counter == "budget" {
		return core.PerCalendarMonth(1_000_000_000, "UTC")
	}
	return core.PerDay(1_000_000_000)
}

// usedOf returns what a subject has used of a counter.
func usedOf(t *testing.T, limiter *core.Limiter, counter, subject string) int {
	d, err := limiter.MustCounter(counter, roomy(counter)).Peek(context.Background(), subject)
	if err != nil {
		t.Fatal(err)
	}
	return d.Limit.Max - d.Remaining
}

// explains reports whether a number is the sum of some of others.
func explains(sum int, of []int) bool {
	sums := map[int]bool{0: true}
	for _, n := range of {
		for s := range maps.Clone(sums) {
			sums[s+n] = true
		}
	}
	return sums[sum]
}
