package limitheader

import (
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

// writeBinding writes the headers that describe a single limit. It leaves them unchanged if they
// already describe a limit of an outer middleware that binds more. A soft limit never replaces
// another.
func (w *Writer) writeBinding(to adapter.HeaderWriter) {
	l := w.binding()
	if l == nil {
		return
	}
	reset, _ := l.Reset(l.Verdict)
	own := oneLimit{limit: l.atOnce(), remaining: l.Verdict.Remaining, reset: waits.Seconds(reset)}
	outranks := func(present oneLimit, ok bool) bool {
		return ok && (l.Counter.Behind != 0 || l.Verdict.RetryAfter == 0 && !w.bindsMore(own, present))
	}
	if w.Style.has(Draft7) && !outranks(readDraft7(to)) {
		to.Set(headerPolicy, l.draft7)
		w.text = own.appendDraft7(w.text[:0])
		w.values.set(to, headerRateLimit, w.text)
	}
	if w.Style.has(XRateLimit) {
		own.reset = waits.Seconds(time.Duration(time.Now().UnixNano()) + reset)
	}
	if w.Style.has(XRateLimit|XRateLimitDelta) && !outranks(readXRateLimit(to)) {
		w.writeXRateLimit(to, own)
	}
}

// binding returns the limit that binds most among those that the older styles can describe, or nil.
// These styles give each limit a time until its permits are back. A slot of Concurrency comes back
// when its call ends, usually before the caller has read the reply, so Concurrency is left out
// unless the caller has to wait for a slot. A block without an end is left out too.
func (w *Writer) binding() (most *Limit) {
	for i := range w.limits {
		l := &w.limits[i]
		_, timed := l.Reset(l.Verdict)
		if timed && (most == nil || w.BindsMore(l.Verdict, most.Verdict, l.Counter.Refuses(l.Verdict), most.Counter.Refuses(most.Verdict))) {
			most = l
		}
	}
	return most
}

// oneLimit holds the numbers of a limit that the older styles show.
type oneLimit struct{ limit, remaining, reset int64 }

// bindsMore compares two limits that allow a call, by the numbers that a header shows.
func (w *Writer) bindsMore(l, other oneLimit) bool {
	a, b := &w.compared[0], &w.compared[1]
	a.Remaining, a.ResetAfter = l.remaining, l.reset
	b.Remaining, b.ResetAfter = other.remaining, other.reset
	return w.BindsMore(a, b, false, false)
}

func (l oneLimit) appendDraft7(text []byte) []byte {
	text = strconv.AppendInt(append(text, "limit="...), l.limit, 10)
	text = strconv.AppendInt(append(text, ", remaining="...), l.remaining, 10)
	return strconv.AppendInt(append(text, ", reset="...), l.reset, 10)
}

func (w *Writer) writeXRateLimit(to adapter.HeaderWriter, l oneLimit) {
	w.setNumber(to, headerXLimit, l.limit)
	w.setNumber(to, headerXRemaining, l.remaining)
	w.setNumber(to, headerXReset, l.reset)
}

func (w *Writer) setNumber(to adapter.HeaderWriter, name string, n int64) {
	w.text = strconv.AppendInt(w.text[:0], n, 10)
	w.values.set(to, name, w.text)
}

// readDraft7 returns the numbers in the header that an outer middleware has written. It leaves out
// the limit, which is not compared.
func readDraft7(from adapter.HeaderWriter) (l oneLimit, ok bool) {
	_, rest, _ := strings.Cut(firstValue(from, headerRateLimit), ", remaining=")
	if rest == "" {
		return l, false
	}
	remaining, reset, _ := strings.Cut(rest, ", reset=")
	return readOneLimit(remaining, reset)
}

// readXRateLimit is readDraft7 for the X-RateLimit headers.
func readXRateLimit(from adapter.HeaderWriter) (l oneLimit, ok bool) {
	remaining := firstValue(from, headerXRemaining)
	if remaining == "" {
		return l, false
	}
	return readOneLimit(remaining, firstValue(from, headerXReset))
}

func readOneLimit(remaining, reset string) (l oneLimit, ok bool) {
	var remainingErr, resetErr error
	l.remaining, remainingErr = strconv.ParseInt(remaining, 10, 64)
	l.reset, resetErr = strconv.ParseInt(reset, 10, 64)
	return l, remainingErr == nil && resetErr == nil
}
