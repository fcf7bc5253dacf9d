package toplist

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// wantBound checks the promise of Operator.Top for a list: no number is too high, none is too low by
// more than 1 % of all refusals, and every subject with more than 2 % of them is there.
func wantBound(t *testing.T, table *Table, list string, refused map[Ruled]int) {
	t.Helper()
	lists, err := Read(background, table, list, 60)
	if err != nil {
		t.Fatal(err)
	}
	total, listed := 0, make(map[Ruled]int)
	for _, e := range lists.Refused {
		listed[Ruled{e.Rule, Entry{Subject: e.Subject}}] = int(e.Number)
	}
	for _, n := range refused {
		total += n
	}
	for subject, n := range refused {
		got, isListed := listed[subject]
		if got > n || isListed && 100*(n-got) > total || !isListed && 100*n > 2*total {
			t.Errorf("%q: of %d refusals, %s of %s has %d, and is listed with %d", list, total, subject.Subject, subject.Rule, n, got)
		}
	}
}

// Callers choose their subjects and times so that a sketch or a list drops what they want to hide:
// many callers, from a fixed set or new each time, and a few that are refused slowly.
func TestTheBoundHolds(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	client := redistest.Start(t).Client(t)
	for range 5 {
		client.FlushAll(background)
		for engine, slots := range map[string]Slots{"memory": NewMemory(), "redis": newRedis(t, client)} {
			t.Run(engine, func(t *testing.T) { newAttack(t, slots, random).run(t) })
		}
	}
}

// attack are refusals by two rules in a few processes.
type attack struct {
	random  *rand.Rand
	tables  []*Table
	rules   map[*Table][]*Rule
	refused map[string]map[Ruled]int // by list
	callers int                      // that were ever seen
}

var attacked = []string{"login", "search"}

func newAttack(t *testing.T, slots Slots, random *rand.Rand) *attack {
	a := &attack{random: random, rules: make(map[*Table][]*Rule), refused: make(map[string]map[Ruled]int)}
	for range 1 + random.IntN(4) {
		table := newTable(t, slots, new(time.Duration))
		a.tables = append(a.tables, table)
		for _, name := range attacked {
			a.rules[table] = append(a.rules[table], table.Rule(name))
		}
	}
	for _, list := range append(attacked, all) {
		a.refused[list] = make(map[Ruled]int)
	}
	return a
}

func (a *attack) run(t *testing.T) {
	for range 6 {
		distinct := []int{60, 120, 300, 1_000, 0}[a.random.IntN(5)]
		slow := a.random.IntN(4)
		weight, flushEvery := 1+a.random.IntN(40), 1+a.random.IntN(100)
		for call := range 1_500 {
			if slow > 0 && call%10 == 0 {
				a.refuse(-1-call/10%slow, weight)
			} else {
				a.refuse(a.caller(distinct), weight)
			}
			if call%flushEvery == 0 {
				a.tables[call/flushEvery%len(a.tables)].Flush()
			}
		}
	}
	for _, table := range a.tables {
		table.Flush()
	}
	for list, refused := range a.refused {
		wantBound(t, a.tables[0], list, refused)
	}
}

// caller returns one of a number of distinct callers, or if that is 0, one that was never seen.
func (a *attack) caller(distinct int) int {
	if distinct > 0 {
		return a.random.IntN(distinct)
	}
	a.callers++
	return 1_000_000 + a.callers
}

// refuse notes refusals of a subject by a rule.
func (a *attack) refuse(n, calls int) {
	table, rule := a.tables[a.random.IntN(len(a.tables))], min(1, a.random.IntN(5))
	a.rules[table][rule].NoteRefusal(uint64(calls), []byte(user(n)))
	subject := Ruled{attacked[rule], Entry{Subject: user(n)}}
	a.refused[attacked[rule]][subject] += calls
	a.refused[all][subject] += calls
}
