// Package limitheader writes the headers that tell callers their limits: RateLimit and
// RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers, and X-RateLimit.
package limitheader

import (
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

// Style is a set of headers. core.HeaderStyle describes them.
type Style uint8

// The styles, which combine with |, except None.
const (
	Draft10 Style = 1 << iota
	Draft7
	XRateLimit
	XRateLimitDelta
	None
	Draft11
)

func (s Style) has(style Style) bool { return s&style != 0 }

// Check returns what is wrong with the style, or "".
func (s Style) Check() string {
	switch {
	case s >= Draft11<<1:
		return "is not a style of this package"
	case s.has(None) && s != None:
		return "NoHeaders goes with no other style"
	case bits.OnesCount8(uint8(s&(Draft7|Draft10|Draft11))) > 1:
		return "HeadersDraft7, HeadersDraft10 and HeadersDraft11 write the same headers: choose one"
	case s.has(XRateLimit) && s.has(XRateLimitDelta):
		return "HeadersXRateLimit and HeadersXRateLimitDelta write the same headers: choose one"
	default:
		return ""
	}
}

// Limit is a limit of a call, with the store's verdict. If its Counter is lenient, the limit is soft,
// and shown only if there is no other.
type Limit struct {
	*Policy
	Counter *algorithm.Counter
	Verdict *algorithm.Verdict
	// Unit is how many bytes a permit stands for, if the cost of the call is the size of its body;
	// otherwise 0.
	Unit int64
}

// atOnce returns how many permits of the limit can pass at one moment.
func (l *Limit) atOnce() int64 {
	return l.Counter.Limit.Max // which may be stricter than the Policy
}

// Writer writes the headers of one reply after the other. Set its fields first. Then, for each
// reply, call Add for each limit, and Write. It is not safe for concurrent use.
type Writer struct {
	Style Style
	// BindsMore reports whether the verdict a binds a call more than b does. The other two say
	// whether the call is refused by them.
	BindsMore func(a, b *algorithm.Verdict, refused, other bool) bool

	limits []Limit // those of the reply, in order
	text   []byte  // a header's value
	values values

	joined       []*Policy // the policies of an earlier reply, if there were several
	joinedPolicy string    // their RateLimit-Policy

	compared [2]algorithm.Verdict // the arguments of bindsMore; as local variables they would be allocated for each reply
}

// Add adds a limit to the next reply.
func (w *Writer) Add(l Limit) { w.limits = append(w.limits, l) }

// Has reports whether RateLimit-Policy of a reply already has the entry of a limit, from a
// middleware further out. It reports false in other styles.
func (w *Writer) Has(of adapter.HeaderWriter, p *Policy) bool {
	if !w.Style.has(Draft10 | Draft11) {
		return false
	}
	for _, line := range allValues(of, headerPolicy) {
		for entry := range strings.SplitSeq(line, ", ") {
			if entry == p.Draft10 {
				return true
			}
		}
	}
	return false
}

// Write writes the headers of a reply, unless no limit was added, and forgets the limits. It adds a
// line to RateLimit, so that each of several middlewares has its entry. The other headers describe
// the limit that binds most. refused says that the call is refused, by whatever limit.
func (w *Writer) Write(to adapter.HeaderWriter, refused bool) {
	if len(w.limits) > 1 {
		w.dropSoft()
	}
	if len(w.limits) > 0 {
		if w.Style.has(Draft10 | Draft11) {
			w.writeLists(to, refused)
		}
		if w.Style.has(Draft7 | XRateLimit | XRateLimitDelta) {
			w.writeBinding(to)
		}
	}
	w.limits = w.limits[:0]
}

// dropSoft removes the soft limits, if there are others.
func (w *Writer) dropSoft() {
	soft := 0
	for i := range w.limits {
		if w.limits[i].Counter.Behind != 0 {
			soft++
		}
	}
	if 0 < soft && soft < len(w.limits) {
		w.limits = slices.DeleteFunc(w.limits, func(l Limit) bool { return l.Counter.Behind != 0 })
	}
}

// writeLists adds RateLimit and RateLimit-Policy in the form of draft 10 or 11, with an entry for
// each limit.
func (w *Writer) writeLists(to adapter.HeaderWriter, refused bool) {
	text := w.text[:0]
	for i := range w.limits {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = w.appendEntry(text, &w.limits[i], refused)
	}
	w.text = text
	policy := w.policy()
	switch to := to.(type) {
	case http.Header:
		entries := w.values.keep(text)
		if len(to) == 0 { // looking for earlier lines would take a tenth of a call's time
			to[headerPolicy], to[headerRateLimit] = w.values.pair(policy, entries)
			return
		}
		w.values.add(to, headerPolicy, policy)
		w.values.add(to, headerRateLimit, entries)
	case textAdder:
		to.Add(headerPolicy, policy)
		to.AddBytesV(headerRateLimit, text)
	default:
		to.Add(headerPolicy, policy)
		to.Add(headerRateLimit, string(text))
	}
}

// appendEntry appends a limit's entry of RateLimit, with its r and, if it is known, its t.
func (w *Writer) appendEntry(text []byte, l *Limit, refused bool) []byte {
	var r, t int64
	var known bool
	if w.Style.has(Draft11) {
		r, t, known = l.draft11(refused)
	} else {
		r, t, known = l.draft10()
	}
	text = strconv.AppendInt(append(text, l.entry...), r, 10)
	if known {
		text = strconv.AppendInt(append(text, ";t="...), t, 10)
	}
	return text
}

// draft10 returns the permits left and, if it is known, the seconds to wait or until all are back.
func (l *Limit) draft10() (r, t int64, known bool) {
	reset, known := l.Reset(l.Verdict)
	return l.Verdict.Remaining, waits.Seconds(reset), known
}

// policy returns the value of RateLimit-Policy. For one limit, that is a constant. For several
// limits, it is the text of the previous reply with several limits if those were the same, as they
// usually are.
func (w *Writer) policy() string {
	switch {
	case w.Style.has(Draft11) && slices.ContainsFunc(w.limits, Limit.inBytes):
		return w.bytesPolicy()
	case len(w.limits) == 1:
		return w.limits[0].Draft10
	case !w.isJoined():
		w.joinPolicies()
	}
	return w.joinedPolicy
}

// isJoined reports whether the policies of the reply are those of joinedPolicy.
func (w *Writer) isJoined() bool {
	if len(w.limits) != len(w.joined) {
		return false
	}
	for i, joined := range w.joined {
		if w.limits[i].Policy != joined {
			return false
		}
	}
	return true
}

func (w *Writer) joinPolicies() {
	w.joined = w.joined[:0]
	entries := make([]string, len(w.limits))
	for i, l := range w.limits {
		w.joined, entries[i] = append(w.joined, l.Policy), l.Draft10
	}
	w.joinedPolicy = strings.Join(entries, ", ")
}
