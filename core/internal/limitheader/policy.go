package limitheader

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

// Policy holds what headers say about a limit in every reply.
type Policy struct {
	Title   string // the name as callers see it
	Draft10 string // its entry of RateLimit-Policy
	draft7  string // the same in the older form
	label   string // the title as a structured-field string, quotes included
	entry   string // the beginning of its entry of RateLimit, before the number of r
	size    int64  // the permits that can pass at once
	seconds int64  // its span
	slots   bool   // its permits are slots of calls in flight
	// Leased says that processes take permits of the limit ahead of their use, and may give them
	// back at any time.
	Leased bool
}

// NewPolicy returns the Policy of a limit. The title is printable ASCII, and size is the number of
// permits that can pass at once. Slots have no span, and no span is shown as zero seconds.
func NewPolicy(title string, size int, span time.Duration, slots bool) Policy {
	label, seconds := quoted(title), max(1, waits.Seconds(span))
	p := Policy{
		Title:   title,
		Draft10: fmt.Sprintf("%s;q=%d;w=%d", label, size, seconds),
		draft7:  fmt.Sprintf("%d;w=%d", size, seconds),
		label:   label, entry: label + ";r=", size: int64(size), seconds: seconds, slots: slots,
	}
	if slots {
		p.Draft10 = fmt.Sprintf(`%s;q=%d;qu="concurrent-requests"`, label, size)
	}
	return p
}

// Reset returns the wait if the call was refused, and otherwise the time until all permits are
// back. known is false for slots if one is free, because they come back at no known time, and for a
// block without an end.
func (p *Policy) Reset(v *algorithm.Verdict) (reset time.Duration, known bool) {
	switch {
	case v.RetryAfter == algorithm.Forever:
		return 0, false
	case v.RetryAfter > 0:
		return time.Duration(v.RetryAfter) * time.Microsecond, true
	default:
		return time.Duration(v.ResetAfter) * time.Microsecond, !p.slots
	}
}

// maxTitle is the longest title, so that a rule with many patterns keeps headers short.
const maxTitle = 128

// Title returns a name as headers can carry it: other bytes than printable ASCII become %XX, and a
// long name is shortened.
func Title(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c < 0x20 || c > 0x7e {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	if b.Len() <= maxTitle {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s#%x", b.String()[:maxTitle-17], sum[:8])
}

// quoted returns a structured-field string (RFC 9651) of printable ASCII.
func quoted(title string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(title) + `"`
}
