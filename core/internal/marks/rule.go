package marks

import (
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Rule has the marks under the rules of one name. It is safe for concurrent use.
type Rule struct {
	set  *Set
	name string
	// asked is how many marks there are, plus one until the set has read all marks. Calls look no
	// further while it is 0. For an unlisted rule it counts the marks of all rules.
	asked    *atomic.Int64
	own      atomic.Int64 // asked of a listed rule
	unlisted bool         // there are too many rules to keep this one in the set
	subjects table
	networks networks
	_        [16]byte // so that nothing that is written often is in the same line of a processor's cache
}

// Found is what is marked about a subject. Its zero value is nothing.
type Found struct{ ban, other *Mark }

// Empty reports whether nothing holds.
func (f Found) Empty() bool { return f.ban == nil && f.other == nil }

// Mark returns the mark that holds, or nil.
func (f Found) Mark() *Mark { return first(f.ban, f.other) }

// Ban returns the subject's ban, or nil.
func (f Found) Ban() *Mark { return f.ban }

// Other returns the mark beside the ban, or nil.
func (f Found) Other() *Mark { return f.other }

// MayHave reports whether any subject of the rule may have a mark.
func (r *Rule) MayHave() bool { return r.asked.Load() > 0 }

// Lasts returns how much longer a mark that holds lasts from now by Options.Now, in microseconds, or
// algorithm.Forever.
func (m *Mark) Lasts(now int64) int64 {
	if m.ends == never {
		return algorithm.Forever
	}
	return max(1, m.ends-now)
}

// Find returns the marks of a subject that hold now, and those of the caller's address and of its
// networks; addr is invalid if the address is not known. Of an address and its networks, the longest
// one that is marked counts. It allocates nothing.
func (r *Rule) Find(subject []byte, addr netip.Addr) Found {
	if !r.MayHave() {
		return Found{}
	}
	return r.find(subject, addr)
}

// find is Find for a rule that may have marks. The two are apart so that the compiler inlines Find.
func (r *Rule) find(subject []byte, addr netip.Addr) (f Found) {
	if r.unlisted {
		r = r.set.listed(r.name)
	}
	f = r.found(r.entryOf(subject))
	if r.networks.some.Load() && addr.IsValid() {
		f = f.with(r.networks.find(r, addr))
	}
	return f
}

// found returns the marks of an entry that hold now. It asks for the time only if one of them ends,
// because that takes as long as all the rest.
func (r *Rule) found(e *entry) Found {
	now := int64(0)
	if e.ends() {
		now = r.set.Now()
	}
	return e.found(now)
}

func (r *Rule) entryOf(subject []byte) *entry {
	if len(subject) > MaxSubject {
		return r.subjects.find([]byte(nameOf(subject)))
	}
	return r.subjects.find(subject)
}

// ends reports whether a mark of the entry ends by itself.
func (e *entry) ends() bool {
	return e != nil && (e.ban.Load().endsByItself() || e.other.Load().endsByItself())
}

// found returns the marks of an entry that hold at a time. A nil entry has none.
func (e *entry) found(now int64) (f Found) {
	if e == nil {
		return Found{}
	}
	return Found{e.ban.Load().holding(now), e.other.Load().holding(now)}
}

// with returns what holds for a subject whose address has marks, too.
func (f Found) with(address Found) Found {
	return Found{first(f.ban, address.ban), first(f.other, address.other)}
}

// first returns the one of two marks that goes first, or own if they are equal. Either may be nil.
func first(own, other *Mark) *Mark {
	if own == nil || other != nil && precedence(other.Kind) < precedence(own.Kind) {
		return other
	}
	return own
}

func precedence(k Kind) int { return slices.Index(kinds[:], k) }
