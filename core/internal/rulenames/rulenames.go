// Package rulenames knows which limits the name of each rule stands for on a limiter. Rules with one
// name share counters, so they must agree.
//
// Rules in Go claim their names forever, because a Guard may be used forever. A RuleSet claims the
// attached names of its current version, so a set that is only compared claims nothing. Handles
// claim nothing, because they may be made in each call, with any limit. The location of a rule is
// looked up only if its name is new, because that takes longer than everything else.
package rulenames

import (
	"slices"
	"sync"
)

// maxNames bounds the tables, because handlers may make rules in each call. Names beyond it are not
// compared.
const maxNames = 10_000

// Limit is the type of limits, which is core.Limit.
type Limit interface {
	comparable
	String() string
}

// Table holds the claims to names, with limits in the form L. It is safe for concurrent use.
type Table[L Limit] struct {
	// sharesCounter reports whether two limits that differ only in their numbers have one counter.
	sharesCounter func(a, b L) bool

	mu     sync.Mutex
	claims map[string][]claimed[L] // by Claim.Name
}

// New returns an empty table. sharesCounter reports whether two limits have one counter.
func New[L Limit](sharesCounter func(a, b L) bool) *Table[L] {
	return &Table[L]{sharesCounter: sharesCounter, claims: make(map[string][]claimed[L])}
}

// Owner is a set of rules, as the owner of names. Its zero value owns none. A nil Owner stands for the
// rules that are attached one by one.
type Owner struct {
	names []string // that it has claims to; Table.mu protects it
}

// Claim is what a name stands for in the rules of one owner. All rules with a name have the same
// Limits and Soft, and none Leases if another Settles.
type Claim[L Limit] struct {
	Name     string // or the key tail of a rule that does not share the counters of its name
	Rule     string
	Limits   []L
	Soft     bool
	Outgoing bool   // the rules are for calls that go out
	Leases   bool   // a rule of this name has a Lease
	Settles  bool   // a rule of this name charges estimates
	Place    string // where the rule is written, or was attached
}

// claimed is a claim in the table.
type claimed[L Limit] struct {
	Claim[L]
	owner *Owner
}

// Claim claims the names of rules. If one of them stands for something else, it claims none and
// returns the conflict. place returns where a rule is written.
func (t *Table[L]) Claim(owner *Owner, rules []Claim[L], place func(rule string) string) *Conflict[L] {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh, wrong := t.compare(rules, func(claimed[L]) bool { return true })
	if len(wrong) > 0 {
		return wrong[0]
	}
	for name, claim := range fresh {
		if known := t.find(name, owner); known != nil {
			known.Leases, known.Settles = known.Leases || claim.Leases, known.Settles || claim.Settles
		} else {
			t.add(claim, owner, place)
		}
	}
	return nil
}

// Replace claims the names of a set's rules, and gives up those that the set had before. If some
// names stand for something else elsewhere, it changes nothing and returns the conflicts.
func (t *Table[L]) Replace(owner *Owner, rules []Claim[L], place func(rule string) string) []*Conflict[L] {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh, wrong := t.compare(rules, func(c claimed[L]) bool { return c.owner != owner })
	if len(wrong) > 0 {
		return wrong
	}
	for _, name := range owner.names {
		t.remove(name, owner)
	}
	owner.names = owner.names[:0]
	for _, claim := range fresh {
		t.add(claim, owner, place)
	}
	return nil
}

// compare returns the claims of the rules by name, and their conflicts with each other and with the
// claims that stay.
func (t *Table[L]) compare(rules []Claim[L], stays func(claimed[L]) bool) (fresh map[string]Claim[L], wrong []*Conflict[L]) {
	fresh = make(map[string]Claim[L])
	for _, own := range rules {
		taken, among := fresh[own.Name]
		conflicts := func(c claimed[L]) bool { return stays(c) && own.differs(&c.Claim) }
		if at := slices.IndexFunc(t.claims[own.Name], conflicts); at >= 0 {
			wrong = append(wrong, &Conflict[L]{t.claims[own.Name][at].Claim, own})
		} else if among && own.differs(&taken) {
			wrong = append(wrong, &Conflict[L]{taken, own})
		}
		own.Leases, own.Settles = own.Leases || taken.Leases, own.Settles || taken.Settles
		fresh[own.Name] = own
	}
	return fresh, wrong
}

// differs reports whether a name cannot stand for both claims.
func (c *Claim[L]) differs(other *Claim[L]) bool {
	return !slices.Equal(c.Limits, other.Limits) || c.Soft != other.Soft || c.leasesBeside(other)
}

// leasesBeside reports whether one claim has a Lease and the other charges estimates: leased permits would
// be used while the counter is in debt.
func (c *Claim[L]) leasesBeside(other *Claim[L]) bool {
	return c.Leases && other.Settles || c.Settles && other.Leases
}

// find returns the claim of an owner to a name, or nil.
func (t *Table[L]) find(name string, owner *Owner) *claimed[L] {
	for i := range t.claims[name] {
		if t.claims[name][i].owner == owner {
			return &t.claims[name][i]
		}
	}
	return nil
}

// add keeps a new claim, if there is room for its name.
func (t *Table[L]) add(c Claim[L], owner *Owner, place func(rule string) string) {
	if t.claims[c.Name] == nil && len(t.claims) >= maxNames {
		return
	}
	c.Place = place(c.Rule)
	t.claims[c.Name] = append(t.claims[c.Name], claimed[L]{c, owner})
	if owner != nil {
		owner.names = append(owner.names, c.Name)
	}
}

// remove gives up the claim of an owner to a name.
func (t *Table[L]) remove(name string, owner *Owner) {
	left := slices.DeleteFunc(t.claims[name], func(c claimed[L]) bool { return c.owner == owner })
	if t.claims[name] = left; len(left) == 0 {
		delete(t.claims, name)
	}
}
