package replay

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/replay/internal/accesslog"
)

// Report says what the rules would have done to the calls in logs. String returns it as a text for a
// terminal, and Chart.SVG draws it. Fields may be added later.
type Report struct {
	// From and To are when the first and the last call began.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Logs are the logs, with their formats.
	Logs []ReadLog `json:"logs"`
	// Calls is the number of calls, and Refused how many of them a rule would have refused. A rule in
	// DryRun or Soft refuses nobody.
	Calls   int `json:"calls"`
	Refused int `json:"refused"`
	// WorstMinute is the minute with the most refusals, or else with the most calls.
	WorstMinute Minute `json:"worst_minute"`
	// Rules has the rules in the order of the Guards.
	Rules []RuleReport `json:"rules"`
	// SuggestedFor is Options.Suggest.
	SuggestedFor float64 `json:"suggested_for,omitempty"`
	// Chart has the calls over time.
	Chart Chart `json:"chart"`

	// Lines is the number of lines that are not empty. Those that are neither calls nor BadLines are
	// messages of a proxy, and connections without a request. BadExamples has the first three BadLines.
	Lines       int       `json:"lines"`
	BadLines    int       `json:"bad_lines"`
	BadExamples []BadLine `json:"bad_examples,omitempty"`
	// ClockSeconds is the unit of the logs' times, and SameTime how many calls have the time of the call
	// before: their order is that of the log, not of the service.
	ClockSeconds float64 `json:"clock_seconds"`
	SameTime     int     `json:"same_time"`
	// Late is how many calls were written over a minute after others that began later. They are decided
	// a minute late.
	Late int `json:"late"`
	// Steps are the times at which the clock of a log went back by more than a minute. Later
	// calls are moved, so that they continue where the log was.
	Steps []Step `json:"steps,omitempty"`
}

// ReadLog is a log that was read.
type ReadLog struct {
	Name   string `json:"name"`
	Format string `json:"format"`
	CutOff bool   `json:"cut_off,omitempty"` // the end of a compressed log is missing
}

// BadLine is a line that could not be read, with its beginning, quoted.
type BadLine = accesslog.BadLine

// Step is a jump of a log's clock: when it showed At (UTC), it went back by BackSeconds.
type Step struct {
	At          time.Time `json:"at"`
	BackSeconds float64   `json:"back_seconds"`
}

// Minute has the numbers of the calls in the minute that begins at Time (UTC).
type Minute struct {
	Time    time.Time `json:"time"`
	Calls   int       `json:"calls"`
	Refused int       `json:"refused"`
}

// RuleReport says what one rule would have done.
type RuleReport struct {
	Name  string       `json:"name"`
	Limit core.Limit   `json:"limit"`
	Also  []core.Limit `json:"also,omitempty"`
	Mode  core.Mode    `json:"mode,omitempty"`
	// Calls is the number of calls that the rule decided, and Refused how many of them it refused, or
	// would have refused if it were not in DryRun or Soft. Reasons says why.
	Calls   int                 `json:"calls"`
	Refused int                 `json:"refused"`
	Reasons map[core.Reason]int `json:"reasons,omitempty"`
	// Subjects is the number of subjects, Hit how many of them were ever refused, and Near how many of
	// the others used at least nine tenths of a limit.
	Subjects int `json:"subjects"`
	Hit      int `json:"hit"`
	Near     int `json:"near"`
	// Top are the 20 subjects that were refused most.
	Top []Subject `json:"top,omitempty"`
	// WorstMinute is the rule's own.
	WorstMinute Minute `json:"worst_minute"`
	// Ignored is how many calls a rule with NeedLogin did not decide, because they have no user.
	Ignored int `json:"ignored,omitempty"`
	// Missing are the fields that the rule reads and calls lack. A rule counts a call without its key by
	// the address, as it does in a service.
	Missing []Missing `json:"missing,omitempty"`
	// Suggestions are for the limits of the rule, if Options.Suggest is set.
	Suggestions []Suggestion `json:"suggestions,omitempty"`
}

// Subject is a subject that a rule counts.
type Subject struct {
	Subject string `json:"subject"`
	Calls   int    `json:"calls"`
	Refused int    `json:"refused"`
}

// Missing is a field, by its name in Options.Fields, and the number of calls that lack it.
type Missing struct {
	Field string `json:"field"`
	Calls int    `json:"calls"`
}

// Suggestion is the smallest limit in place of another that would have refused fewer subjects than
// Options.Suggest allows, if there were no other limit. The Burst of a TokenBucket changes, and
// otherwise the Max. Callers with a limit of their own, by a plan or by LimitFor, are left out.
type Suggestion struct {
	Limit core.Limit `json:"limit"`
	// Suggested is the zero Limit if no limit is large enough.
	Suggested core.Limit `json:"suggested,omitzero"`
	// Subjects is the number of subjects. Refused is how many of them the suggested limit would have
	// refused, and RefusedNow how many the present one would.
	Subjects   int `json:"subjects"`
	Refused    int `json:"refused"`
	RefusedNow int `json:"refused_now"`
}

// maxTop is the number of subjects that a report lists for a rule.
const maxTop = 20

// report makes the report.
func (r *run) report(merged *accesslog.Merged) *Report {
	report := &Report{
		From: timeOf(r.times.start), To: timeOf(r.times.end), Calls: r.decided, Refused: r.times.refused,
		WorstMinute: r.times.report(), Chart: r.times.chart(), Lines: r.counts.Lines, BadLines: r.counts.Bad, BadExamples: r.counts.Examples,
		ClockSeconds: seconds(merged.Unit()), SameTime: r.sameAs, Late: r.late,
		SuggestedFor: r.options.Suggest,
	}
	for i, err := range merged.Errs() {
		report.Logs = append(report.Logs, ReadLog{r.names[i], r.formats[i], errors.Is(err, accesslog.ErrCutOff)})
	}
	for _, s := range merged.Steps() {
		report.Steps = append(report.Steps, Step{timeOf(s.At), seconds(s.Back)})
	}
	for _, t := range r.tally.rules {
		report.Rules = append(report.Rules, t.report(r.peaks, r.options.Suggest))
	}
	return report
}

func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

func seconds(micros int64) float64 { return float64(micros) / 1e6 }

func (m *minutes) report() Minute {
	worst := m.worstSoFar()
	return Minute{timeOf(worst.at * minute), worst.calls, worst.refused}
}

// report makes the report on one rule.
func (r *ruleTally) report(p *peaks, percent float64) RuleReport {
	report := RuleReport{
		Name: r.name, Calls: r.calls, Refused: r.refused, Reasons: r.reasons, Subjects: len(r.subjects), Top: r.top(),
		WorstMinute: r.times.report(), Ignored: r.ignored,
	}
	if r.rule != nil {
		report.Limit, report.Also, report.Mode = r.rule.Limit, r.rule.Also, r.rule.Mode
	}
	for _, s := range r.subjects {
		switch {
		case s.refused > 0:
			report.Hit++
		case s.most >= 0.9:
			report.Near++
		}
	}
	for _, n := range r.needs {
		if n.missing > 0 && (n.field != "seconds" || n.missing == r.calls) {
			report.Missing = append(report.Missing, Missing{n.field, n.missing})
		}
	}
	if p != nil {
		report.Suggestions = p.suggest(r.name, percent)
	}
	return report
}

// top returns the subjects that were refused most.
func (r *ruleTally) top() (top []Subject) {
	for name, s := range r.subjects {
		if s.refused > 0 {
			top = append(top, Subject{name, s.calls, s.refused})
		}
	}
	slices.SortFunc(top, func(a, b Subject) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Subject, b.Subject))
	})
	return slices.Clip(top[:min(len(top), maxTop)])
}

// suggest returns the suggestions for a rule.
func (p *peaks) suggest(name string, percent float64) (all []Suggestion) {
	for _, r := range p.rules {
		if r.name != name {
			continue
		}
		for i := range r.limits {
			if s := r.limits[i].suggest(percent); s != nil {
				all = append(all, *s)
			}
		}
	}
	return all
}
