package banlist

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// Memory is the List of a process without Redis. Its methods return no errors.
type Memory struct {
	bans *memstore.Store
	most int // of all rules

	mu        sync.Mutex
	rules     map[string]map[string]listed // by rule and subject
	count     int
	nextSweep int // the number of bans at which ended ones are removed
}

// listed is what the list keeps of a ban. The store has the rest.
type listed struct {
	algorithm.BanNote
	byHand bool
}

// minSweep is the smallest number of bans at which ended ones are removed.
const minSweep = 1_000

// NewMemory returns a list of at most most bans in a store.
func NewMemory(bans *memstore.Store, most int) *Memory {
	return &Memory{bans: bans, most: most, rules: make(map[string]map[string]listed), nextSweep: minSweep}
}

// Add implements List.
func (m *Memory) Add(_ context.Context, bans []Sighting) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ban := range bans {
		if l := m.rules[ban.Rule][ban.Subject]; !l.byHand || l.Ends != ban.Ends { // otherwise it has an author
			m.add(ban, listed{BanNote: algorithm.BanNote{Ends: ban.Ends}})
		}
	}
	return nil
}

// AddByHand implements List.
func (m *Memory) AddByHand(_ context.Context, ban Sighting, author, note string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(ban, listed{algorithm.BanNote{Ends: ban.Ends, Author: author, Note: note}, true})
	return nil
}

// add lists a ban. The list must be locked.
func (m *Memory) add(ban Sighting, l listed) {
	if m.count >= min(m.nextSweep, m.most) {
		m.sweep()
	}
	subjects := m.rules[ban.Rule]
	if subjects == nil {
		subjects = make(map[string]listed)
		m.rules[ban.Rule] = subjects
	}
	if _, known := subjects[ban.Subject]; !known {
		m.count++
	}
	subjects[ban.Subject] = l
}

// Remove implements List.
func (m *Memory) Remove(_ context.Context, rule, subject string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(rule, subject)
	return nil
}

// remove removes a ban. The list must be locked.
func (m *Memory) remove(rule, subject string) {
	subjects := m.rules[rule]
	if _, known := subjects[subject]; !known {
		return
	}
	m.count--
	if delete(subjects, subject); len(subjects) == 0 {
		delete(m.rules, rule)
	}
}

// sweep makes room. It removes the bans that have ended. If there are still too many, it also
// removes a hundredth of the others, beginning with those that end first. The list must be locked.
func (m *Memory) sweep() {
	now, all := m.bans.Now(), make([]Sighting, 0, m.count)
	for rule, subjects := range m.rules {
		for subject, l := range subjects {
			all = append(all, Sighting{rule, subject, l.Ends})
		}
	}
	slices.SortFunc(all, func(a, b Sighting) int { return cmp.Compare(a.Ends, b.Ends) })
	tooMany := 0
	if len(all) >= m.most {
		tooMany = len(all) - m.most + m.most/100 + 1
	}
	for i, ban := range all {
		if i >= tooMany && ban.Ends > now {
			break
		}
		m.remove(ban.Rule, ban.Subject)
	}
	m.nextSweep = max(minSweep, 2*m.count)
}

// Page implements List.
func (m *Memory) Page(_ context.Context, rule, after string, n int) (page []Entry, next string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var subjects []string
	for subject := range m.rules[rule] {
		if subject > after {
			subjects = append(subjects, subject)
		}
	}
	slices.Sort(subjects)
	if len(subjects) >= n {
		subjects = subjects[:n]
		next = subjects[n-1]
	}
	for _, subject := range subjects {
		if e, ok := m.of(rule, subject); ok {
			page = append(page, e)
		}
	}
	return page, next, nil
}

// Of implements List.
func (m *Memory) Of(_ context.Context, rule, subject string) (e Entry, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok = m.of(rule, subject)
	return e, ok, nil
}

func (m *Memory) of(rule, subject string) (e Entry, ok bool) {
	state, now := m.bans.BanOf(rediskey.Append(nil, "", subject, rediskey.BanTail(rule, false)))
	e, listed := Entry{Subject: subject, BanState: state, At: now}, m.rules[rule][subject]
	e.annotate(listed.BanNote, listed.byHand)
	return e, state.Ends > now
}
