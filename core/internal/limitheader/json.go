package limitheader

import (
	"strconv"

	"github.com/accesslimit/accesslimit/core/internal/problem"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

// AppendJSON appends the limit for callers who ask for their own limits. The numbers are those of the
// headers: see core.OwnLimits.
func (l *Limit) AppendJSON(to []byte) []byte {
	to = problem.AppendJSON(append(to, `{"name":`...), l.Title)
	to = strconv.AppendInt(append(to, `,"limit":`...), l.atOnce(), 10)
	to = strconv.AppendInt(append(to, `,"remaining":`...), l.Verdict.Remaining, 10)
	if reset, known := l.Reset(l.Verdict); known {
		to = strconv.AppendInt(append(to, `,"reset":`...), waits.Seconds(reset), 10)
	}
	if !l.slots {
		to = strconv.AppendInt(append(to, `,"window":`...), l.seconds, 10)
	}
	return append(problem.AppendJSON(append(to, `,"policy":`...), l.Draft10), '}')
}
