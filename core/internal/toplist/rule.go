package toplist

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxSubject is the length of the longest subject in a list, in bytes.
const maxSubject = 255

// The kinds of lists.
const (
	Refused = kind(iota) // numbers of refusals, which are added up
	Near                 // shares of limits in use, of which the highest counts
	kinds
)

type kind int

// join combines two numbers of one subject.
func (k kind) join(a, b float64) float64 {
	if k == Near {
		return max(a, b)
	}
	return a + b
}

// watched is the number of subjects of a rule that a process always keeps.
var watched = [kinds]int{Refused: 256, Near: maxEntries}

// Rule is what a process notes about the calls that a rule decides. It takes only a few words of
// memory until there is something to note. Its methods are safe for concurrent use.
type Rule struct {
	table    *Table
	name     string
	samplers [kinds]sampler

	mu     sync.Mutex
	active bool // the table knows the rule, and something may be noted
	idle   bool // nothing was noted since the last call of release
	found  [kinds]sketch
	room   []byte // for a subject
}

// Weight returns how many observations this one stands for, or 0 if it must not be noted. Callers
// pass a different number for each observation of a rule.
func (r *Rule) Weight(of kind, number uint64) uint64 { return r.samplers[of].weight(number) }

// NoteRefusal notes that a subject was refused, with the weight of this observation.
func (r *Rule) NoteRefusal(weight uint64, subject []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begin(Refused) {
		r.found[Refused].note(r.cut(subject), float64(weight))
	}
}

// NoteUse notes that a subject has this share of its limit in use.
func (r *Rule) NoteUse(share float64, subject []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begin(Near) {
		r.found[Near].note(r.cut(subject), share)
	}
}

// begin counts an observation of the locked rule, and reports whether there is room to note it.
func (r *Rule) begin(of kind) bool {
	r.samplers[of].count(r.table.now())
	if !r.active && r.table.activate(r) {
		r.active = true
		for of := range kinds {
			r.found[of] = newSketch(of)
		}
	}
	r.idle = false
	return r.active
}

// cut returns a subject as lists show it. Callers may choose subjects of any length.
func (r *Rule) cut(subject []byte) []byte {
	if len(subject) <= maxSubject {
		return subject
	}
	digest := fnv.New32a()
	digest.Write(subject)
	mark := fmt.Sprintf("...%08x", digest.Sum32())
	end := maxSubject - len(mark)
	for most := end; end > most-utf8.UTFMax && !utf8.RuneStart(subject[end]); {
		end--
	}
	r.room = append(append(r.room[:0], subject[:end]...), mark...)
	return r.room
}

// take removes and returns what was noted since the last call.
func (r *Rule) take(of kind) (taken sketch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken, r.found[of] = r.found[of], newSketch(of)
	return taken
}

// putBack puts back what was taken but could not be written.
func (r *Rule) putBack(taken sketch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(taken.found) > 0 {
		taken.merge(&r.found[taken.of])
		r.found[taken.of] = taken
	}
}

// release frees the memory of an active rule if nothing was noted since the last call and nothing
// waits to be taken. The table forgets the rule before the next observation can activate it.
func (r *Rule) release(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	idle := r.idle
	r.idle = true
	for of := range r.samplers {
		idle = r.samplers[of].slow(now) && len(r.found[of].found) == 0 && idle
	}
	if idle && r.active {
		r.active, r.found, r.room = false, [kinds]sketch{}, nil
		r.table.deactivate(r)
	}
}

// joined returns a rule and a subject as one text, for the list of all rules.
func joined(rule, subject string) string { return fmt.Sprint(len(rule), ":", rule, subject) }

// split returns the rule and the subject of an entry in the list of all rules.
func split(text string) (rule, subject string, ok bool) {
	var n int
	length, rest, found := strings.Cut(text, ":")
	if _, err := fmt.Sscanf(length, "%d", &n); err != nil || !found || n < 0 || n > len(rest) || joined(rest[:n], rest[n:]) != text {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}
