package limitheader

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

// writeDraft10 adds RateLimit and RateLimit-Policy.
func (w *Writer) writeDraft10(to adapter.HeaderWriter) {
	w.text = w.text[:0]
	for i := range w.limits {
		if i > 0 {
			w.text = append(w.text, ", "...)
		}
		w.text = w.limits[i].appendDraft10(w.text)
	}
	policy := w.draft10Policy()
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

// appendDraft10 appends the limit's entry of RateLimit.
func (l *Limit) appendDraft10(text []byte) []byte {
	text = append(text, l.label...)
	text = strconv.AppendInt(append(text, ";r="...), l.Verdict.Remaining, 10)
	if reset, known := l.Reset(l.Verdict); known {
		text = strconv.AppendInt(append(text, ";t="...), waits.Seconds(reset), 10)
	}
	return text
}

// draft10Policy returns the value of RateLimit-Policy. For one limit, that is a constant. For
// several limits, it is the text of the previous reply with several limits if those were the same,
// as they usually are.
func (w *Writer) draft10Policy() string {
	if len(w.limits) == 1 {
		return w.limits[0].Draft10
	}
	if !slices.EqualFunc(w.limits, w.joined, func(l Limit, p *Policy) bool { return l.Policy == p }) {
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
