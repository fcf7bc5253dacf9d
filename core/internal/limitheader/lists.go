package limitheader

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

// writeLists adds RateLimit and RateLimit-Policy in the form of draft 10 or 11, with an entry for
// each limit.
func (w *Writer) writeLists(to adapter.HeaderWriter, refused bool) {
	w.text = w.text[:0]
	for i := range w.limits {
		if i > 0 {
			w.text = append(w.text, ", "...)
		}
		w.text = w.appendEntry(w.text, &w.limits[i], refused)
	}
	policy := w.policy()
	switch to := to.(type) {
	case http.Header:
		text := w.values.keep(w.text)
		if len(to) == 0 { // looking for earlier lines would take a tenth of a call's time
			to[headerPolicy], to[headerRateLimit] = w.values.single(policy), w.values.single(text)
			return
		}
		w.values.add(to, headerPolicy, policy)
		w.values.add(to, headerRateLimit, text)
	case textAdder:
		to.Add(headerPolicy, policy)
		to.AddBytesV(headerRateLimit, w.text)
	default:
		to.Add(headerPolicy, policy)
		to.Add(headerRateLimit, string(w.text))
	}
}

// appendEntry appends a limit's entry of RateLimit.
func (w *Writer) appendEntry(text []byte, l *Limit, refused bool) []byte {
	if w.Style.has(Draft11) {
		return l.appendDraft11(text, refused)
	}
	reset, known := l.Reset(l.Verdict)
	return l.append(text, l.Verdict.Remaining, waits.Seconds(reset), known)
}

// append appends an entry of RateLimit with its r and, if it is known, its t.
func (l *Limit) append(text []byte, r, t int64, known bool) []byte {
	text = append(text, l.label...)
	text = strconv.AppendInt(append(text, ";r="...), r, 10)
	if known {
		text = strconv.AppendInt(append(text, ";t="...), t, 10)
	}
	return text
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
	case !slices.EqualFunc(w.limits, w.joined, func(l Limit, p *Policy) bool { return l.Policy == p }):
		w.joinPolicies()
	}
	return w.joinedPolicy
}

func (w *Writer) joinPolicies() {
	w.joined = w.joined[:0]
	entries := make([]string, len(w.limits))
	for i, l := range w.limits {
		w.joined, entries[i] = append(w.joined, l.Policy), l.Draft10
	}
	w.joinedPolicy = strings.Join(entries, ", ")
}
