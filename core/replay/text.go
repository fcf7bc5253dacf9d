package replay

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/quote"
)

// String returns the report as a text for a terminal. Subjects are quoted if they have characters that
// a terminal would obey.
func (r *Report) String() string {
	var b strings.Builder
	r.writeCalls(&b)
	r.writeRules(&b)
	for i := range r.Rules {
		r.Rules[i].writeTop(&b)
		r.Rules[i].writeReasons(&b)
	}
	r.writeSuggestions(&b)
	r.writeMissing(&b)
	r.writeLines(&b)
	return b.String()
}

const clockText = "2006-01-02 15:04:05"

func (r *Report) writeCalls(b *strings.Builder) {
	if r.Calls == 0 {
		b.WriteString("There are no calls in the logs.\n")
		return
	}
	fmt.Fprintf(b, "%s from %s to %s UTC\n", count(r.Calls, "call"), r.From.Format(clockText), r.To.Format(clockText))
	fmt.Fprintf(b, "%s refused (%s)", number(r.Refused), share(r.Refused, r.Calls))
	if m := r.WorstMinute; m.Refused > 0 {
		fmt.Fprintf(b, ", at worst %s of %s in the minute from %s", number(m.Refused), count(m.Calls, "call"), m.Time.Format("2006-01-02 15:04"))
	}
	b.WriteString("\n")
}

func (r *Report) writeRules(b *strings.Builder) {
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "rule\tlimit\tcalls\trefused\tsubjects\tever refused\tnearly")
	for i := range r.Rules {
		of := &r.Rules[i]
		refused := fmt.Sprintf("%s (%s)", number(of.Refused), share(of.Refused, of.Calls))
		if of.Mode != core.Enforce {
			refused += " by " + of.Mode.String()
		}
		limits := of.Limit.String()
		for _, l := range of.Also {
			limits += ", " + l.String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s (%s)\t%s\n", plain(of.Name), limits, number(of.Calls), refused,
			number(of.Subjects), number(of.Hit), share(of.Hit, of.Subjects), number(of.Near))
	}
	w.Flush()
}

// writeTop writes whom a rule refuses most.
func (r *RuleReport) writeTop(b *strings.Builder) {
	if r.Refused == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s refuses most:\n", plain(r.Name))
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	for _, s := range r.Top {
		fmt.Fprintf(w, "  %s\t%s of %s\n", plain(s.Subject), number(s.Refused), count(s.Calls, "call"))
	}
	w.Flush()
}

// writeReasons writes why a rule refused calls, beyond the limit that it has.
func (r *RuleReport) writeReasons(b *strings.Builder) {
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		switch reason {
		case core.LimitExceeded, core.SoftExceeded, core.DryRunExceeded:
		default:
			fmt.Fprintf(b, "  %s refused with the reason %s\n", count(r.Reasons[reason], "call"), reason)
		}
	}
}

func (r *Report) writeSuggestions(b *strings.Builder) {
	heading := fmt.Sprintf("\nThe smallest limits that refuse fewer than %.4g %% of subjects:\n", 100-r.SuggestedFor)
	for i := range r.Rules {
		for _, s := range r.Rules[i].Suggestions {
			b.WriteString(heading)
			heading = ""
			fmt.Fprintf(b, "  %s: %s\n", plain(r.Rules[i].Name), s)
		}
	}
}

// String returns a sentence with both limits.
func (s Suggestion) String() string {
	now := fmt.Sprintf("%v refuses %s of %s (%s)", s.Limit, number(s.RefusedNow), count(s.Subjects, "subject"), share(s.RefusedNow, s.Subjects))
	if s.Suggested == (core.Limit{}) {
		return "no limit like " + s.Limit.String() + " is large enough; " + now
	}
	return fmt.Sprintf("%v refuses %s (%s); %s", s.Suggested, number(s.Refused), share(s.Refused, s.Subjects), now)
}

// writeMissing says what the logs do not tell.
func (r *Report) writeMissing(b *strings.Builder) {
	heading := "\nThe logs do not tell everything:\n"
	say := func(format string, args ...any) {
		b.WriteString(heading)
		heading = ""
		fmt.Fprintf(b, "  "+format+"\n", args...)
	}
	for i := range r.Rules {
		of := &r.Rules[i]
		if of.Ignored > 0 {
			say("%s is for users, so it ignores %s without the field user", plain(of.Name), count(of.Ignored, "call"))
		}
		for _, m := range of.Missing {
			say("%s reads %s, which %s of its %s lack", plain(of.Name), plain(m.Field), number(m.Calls), count(of.Calls, "call"))
		}
	}
	if r.SameTime > 0 {
		say("%s began at the same time as another, by a clock of %v: their order is that of the log", count(r.SameTime, "call"), duration(r.ClockSeconds))
	}
	if r.Late > 0 {
		say("%s were logged more than a minute late, and are decided a minute late", count(r.Late, "call"))
	}
	for _, s := range r.Steps {
		say("the clock went back by %v at %s UTC; later calls are moved by that", duration(s.BackSeconds), s.At.Format(clockText))
	}
	for _, l := range r.Logs {
		if l.CutOff {
			say("%s is cut off", plain(l.Name))
		}
	}
}

// writeLines says which lines could not be read.
func (r *Report) writeLines(b *strings.Builder) {
	if r.BadLines == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s of %s could not be read:\n", number(r.BadLines), count(r.Lines, "line"))
	for _, l := range r.BadExamples {
		fmt.Fprintf(b, "  %s:%d: %s: %s\n", plain(l.Log), l.Line, plain(l.Why), l.Text)
	}
}

// plain returns a text from a log, quoted if a terminal would not print it as it is.
func plain(text string) string {
	return quote.Unprintable(text)
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// share returns a part of a whole as a percentage.
func share(part, whole int) string {
	switch percent := 100 * float64(part) / float64(max(1, whole)); {
	case percent == 0:
		return "0 %"
	case percent < 0.01:
		return "under 0.01 %"
	case percent < 10:
		return fmt.Sprintf("%.2g %%", percent)
	default:
		return fmt.Sprintf("%.0f %%", percent)
	}
}

// count returns a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return number(n) + " " + thing + "s"
}

// number returns a number with commas between its thousands.
func number(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
