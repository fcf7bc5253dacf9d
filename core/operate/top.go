package operate

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/quote"
	"github.com/accesslimit/accesslimit/core/internal/tally"
	"github.com/accesslimit/accesslimit/core/internal/toplist"
)

// TopList is what [Operator.Top] returns. Both lists have at most 100 entries, the greatest first.
type TopList struct {
	// Since is the time from which calls are in the lists: the beginning of a minute.
	Since time.Time `json:"since"`
	// Refused are the subjects that were refused most.
	Refused []TopEntry `json:"refused"`
	// Near are the subjects that had the largest shares of a limit in use, at least 80 %.
	Near []TopEntry `json:"near"`
}

// TopEntry is a subject in a [TopList].
type TopEntry struct {
	// Rule is the name of the rule or the handle, as in Stats.
	Rule string `json:"rule"`
	// Subject is the Decision's Key, such as user:alice. If it is longer than 255 bytes, it is cut,
	// and ends with "..." and eight hex digits of a digest. Callers may choose its bytes.
	Subject string `json:"subject"`
	// Refused is about how often the rule refused the subject, or would have refused it if it is in
	// DryRun. It is 0 in Near.
	Refused int64 `json:"refused,omitzero"`
	// Used is the largest share of a limit of the rule that the subject had in use after a call
	// that passed, from 0.8 to 1. It is 0 in Refused.
	Used float64 `json:"used,omitzero"`
}

// Top returns the subjects that a rule refused most, and those that were nearest to its limits,
// over all processes with this Prefix. An empty name stands for all rules and handles together. The
// span is time.Minute, 10*time.Minute or time.Hour. The lists cover the current minute, and that
// many whole minutes before it. A call is in the lists about ten seconds later, if Redis answers.
//
// Every subject with more than 2 % of the refusals of a rule, or of all rules, in these minutes is
// in the list, in whatever order the calls come. Its number is never too high, and it is too low by
// at most 1 % of all these refusals. It is exact while at most 256 subjects are refused in a
// minute. The algorithm is Space-Saving (Metwally, Agrawal and El Abbadi, 2005), merged over
// processes as in "Mergeable Summaries" (Agarwal et al., 2012). All refusals by a limit count: also
// repeated ones ([core.FromDenyCache]), bans, blocks, and calls that rules in DryRun or Soft would
// have refused. If a process refuses more than 8,192 calls of a rule in a second, it counts samples
// of them. Then the number of a subject with 1 % of the refusals is typically 4 % too high or too
// low after ten seconds, and 2 % after a minute. After an outage of Redis a number may be too low,
// because a process never repeats what Redis may have counted.
//
// At most 200 rules have lists. Other rules are left out until one of the 200 has refused nobody
// for an hour, with nobody near its limits. The lists need no further right in Redis, which forgets
// each minute after an hour. Without Redis, a process keeps 75,000 entries, and forgets the oldest
// minutes beyond that.
//
// For any other span, the error is a *[core.RuleError]. Other errors are those of [core.Counter].
func (o *Operator) Top(ctx context.Context, rule string, span time.Duration) (TopList, error) {
	if err := o.made(); err != nil {
		return TopList{}, err
	}
	if span != time.Minute && span != 10*time.Minute && span != time.Hour {
		return TopList{}, &core.RuleError{Rule: rule, Field: "span", Value: span, Why: "must be time.Minute, 10*time.Minute or time.Hour"}
	}
	if err := ctx.Err(); err != nil {
		return TopList{}, err
	}
	name := ""
	if rule != "" {
		name = tally.Label(rule)
	}
	found, err := toplist.Read(ctx, o.parts.Tops, name, int(span/time.Minute))
	if err != nil {
		return TopList{}, o.failedOptional("top", err, o.parts.Log.TopOff)
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

// String returns the lists as a table for a terminal, with the [SubjectText] of each subject.
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
		longest = max(longest, len(quote.Unprintable(e.Rule)))
	}
	for _, e := range entries {
		fmt.Fprintf(text, "%8s  %-*s  %s\n", number(e), longest, quote.Unprintable(e.Rule), SubjectText(e.Subject))
	}
}
