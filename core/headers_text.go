package core

import (
	"fmt"
	"strings"
	"time"
)

// maxTitle is the longest name in a header, so that a rule with many patterns keeps headers short.
const maxTitle = 128

// headerSafe returns a name as headers can carry it: other bytes than printable ASCII become %XX,
// and a long name is shortened.
func headerSafe(name string) string {
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
	return b.String()[:maxTitle-17] + "#" + Digest(name)[:16]
}

// quoted returns a structured-field string (RFC 9651) of printable ASCII.
func quoted(title string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(title) + `"`
}

// ceilSeconds returns a span in whole seconds, rounded up.
func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
