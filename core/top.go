package core

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/tally"
)

// TopList is what [Limiter.Top] returns. Both lists have at most 100 entries, the greatest first.
type TopList struct {
	// Since is the time from which calls are in the lists: the beginning of a minute.
	Since time.Time
	// Refused are the subjects that were refused most.
	Refused []TopEntry
	// Near are the subjects that had the largest shares of a limit in use, at least 80 %.
	Near []TopEntry
}

// TopEntry is a subject in a [TopList].
type TopEntry struct {
	// Rule is the name of the rule or the handle, as in Stats.
	Rule string
	// Subject is the Decision's Key, such as user:alice. If it is longer than 255 bytes, it is cut,
	// and ends with "..." and eight hex digits of a digest. Callers may choose its bytes.
	Subject string
	// Refused is about how often the rule refused the subject, or would have refused it if it is in
	// DryRun. It is 0 in Near.
	Refused int64
	// Used is the largest share of a limit of the rule that the subject had in use after a call that
	// passed, from 0.8 to 1. It is 0 in Refused.
	Used float64
}

// top is [Limiter.Top].
func (o *operations) top(ctx context.Context, rule string, span time.Duration) (TopList, error) {
	switch {
	case o == nil:
		return TopList{}, errNoLimiter
	case span != time.Minute && span != 10*time.Minute && span != time.Hour:
		return TopList{}, &RuleError{Rule: rule, Field: "span", Value: span, Why: "must be time.Minute, 10*time.Minute or time.Hour"}
	case ctx.Err() != nil:
		return TopList{}, ctx.Err()
	}
	name := ""
	if rule != "" {
		name = tally.Label(rule)
	}
	found, err := o.tops.Read(ctx, name, int(span/time.Minute))
	if err != nil {
		return TopList{}, o.failures.errorOfOptional("top", err, o.log.TopOff)
	}
	list := TopList{Since: found.Since}
	for _, e := range found.Refused {
		list.Refused = append(list.Refused, TopEntry{Rule: e.Rule, Subject: e.Subject, Refused: int64(e.Number)})
	}
	for _, e := range found.Near {
		list.Near = append(list.Near, TopEntry{Rule: e.Rule, Subject: e.Subject, Used: e.Number})
	}
	return list, nil
}

// String returns the lists as a table for a terminal. Subjects with bytes that do not print are
// quoted.
//
//	refused most since 14:03:
//	    1234  reply  user:alice
//	nearest to their limits since 14:03:
//	    97 %  reply  user:bob
func (l TopList) String() string {
	var text strings.Builder
	since := l.Since.Format("15:04")
	fmt.Fprintf(&text, "refused most since %s:\n", since)
	writeTop(&text, l.Refused, func(e TopEntry) string { return strconv.FormatInt(e.Refused, 10) })
	fmt.Fprintf(&text, "nearest to their limits since %s:\n", since)
	writeTop(&text, l.Near, func(e TopEntry) string { return strconv.Itoa(int(100*e.Used+1e-9)) + " %" })
	return text.String()
}

func writeTop(text *strings.Builder, entries []TopEntry, number func(TopEntry) string) {
	if len(entries) == 0 {
		text.WriteString("    nobody\n")
		return
	}
	longest := 0
	for _, e := range entries {
		longest = max(longest, len(printableText(e.Rule)))
	}
	for _, e := range entries {
		fmt.Fprintf(text, "%8s  %-*s  %s\n", number(e), longest, printableText(e.Rule), printableText(e.Subject))
	}
}
