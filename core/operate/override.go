package operate

import (
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/marks"
)

// Override is what applies to one subject in place of a rule's limits: exactly one of Limits,
// Unlimited and Blocked. See [Operator.Overrides].
type Override struct {
	// Limits take the place of all limits of the rule: its own, those of Also, and that of the
	// subject's plan. Each window and algorithm is a counter of its own, so a subject whose override has
	// another one than the rule starts afresh.
	Limits []core.Limit `json:"limits,omitempty"`
	// Unlimited lets all calls of the subject pass uncounted. A ban still holds.
	Unlimited bool `json:"unlimited,omitzero"`
	// Blocked refuses all calls of the subject, with the Reason [core.Blocked].
	Blocked bool `json:"blocked,omitzero"`
	// Until is when the override ends, by the clock of Redis. Unset, it holds until it is removed.
	Until time.Time `json:"until,omitzero"`
	// Note says why, in at most 1024 bytes. Unset, it is the note of [WithActor].
	Note string `json:"note,omitzero"`

	// The fields below are filled in by Get and List. Set ignores them.

	// Subject is the subject that the override is for.
	Subject string `json:"subject,omitzero"`
	// Author is that of [WithActor]. Since is when the override was set, by the clock of Redis.
	Author string    `json:"author,omitzero"`
	Since  time.Time `json:"since,omitzero"`
}

// String returns a short description, such as "500/m, 10000/24h until 2026-12-01T00:00:00Z".
func (o Override) String() string {
	text := o.limits()
	switch {
	case o.Unlimited:
		text = "unlimited"
	case o.Blocked:
		text = "blocked"
	}
	if !o.Until.IsZero() {
		text += " until " + o.Until.UTC().Format(time.RFC3339Nano)
	}
	return text
}

// limits returns the limits in their text form.
func (o *Override) limits() string {
	texts := make([]string, len(o.Limits))
	for i, limit := range o.Limits {
		texts[i] = limit.String()
	}
	return strings.Join(texts, ", ")
}

const (
	maxOverrideNote   = 1_024
	maxOverrideLimits = 8
	// maxOverrideEnd is the first time, in microseconds, that is not stored.
	maxOverrideEnd = 1 << 53
)

// check returns what is wrong with the override by itself, or nil.
func (o *Override) check() *core.RuleError {
	wrong := func(field string, value any, why string) *core.RuleError {
		return &core.RuleError{Field: field, Value: value, Why: why}
	}
	kinds := 0
	for _, is := range [...]bool{len(o.Limits) > 0, o.Unlimited, o.Blocked} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return wrong("Override", *o, "must have exactly one of Limits, Unlimited and Blocked")
	case len(o.Limits) > maxOverrideLimits:
		return wrong("Override.Limits", len(o.Limits), "must be at most 8")
	case len(o.Note) > maxOverrideNote:
		return wrong("Override.Note", strconv.Itoa(len(o.Note))+" bytes", "must have at most 1024 bytes")
	case !o.Until.IsZero() && o.Until.UnixMicro() <= 0:
		return wrong("Override.Until", o.Until, overAlready)
	case o.Until.UnixMicro() >= maxOverrideEnd:
		return wrong("Override.Until", o.Until, "must be before the year 2255, or unset")
	}
	return nil
}

const overAlready = "is over already, by the clock of Redis"

// mark returns the mark that the override is.
func (o *Override) mark(rule, subject, author string) marks.Mark {
	m := marks.Mark{Rule: rule, Subject: subject, Kind: marks.Limited, Limits: o.limits(), Author: author, Note: o.Note}
	switch {
	case o.Unlimited:
		m.Kind = marks.Unlimited
	case o.Blocked:
		m.Kind = marks.Blocked
	}
	if !o.Until.IsZero() {
		m.Until = o.Until.UnixMicro()
	}
	return m
}

// overrideOf returns the override that a mark is, or the zero Override if there is none.
func overrideOf(m *marks.Mark) (o Override) {
	if m == nil {
		return o
	}
	o = Override{Unlimited: m.Kind == marks.Unlimited, Blocked: m.Kind == marks.Blocked, Note: m.Note, Subject: m.Subject, Author: m.Author, Since: timeOf(m.Since), Until: timeOf(m.Until)}
	if m.Kind == marks.Limited {
		for text := range strings.SplitSeq(m.Limits, ",") {
			limit, _ := core.ParseLimit(strings.TrimSpace(text)) // it was read before it was stored
			o.Limits = append(o.Limits, limit)
		}
	}
	return o
}

// timeOf returns a time in microseconds since the epoch, or the zero Time for 0.
func timeOf(micro int64) time.Time {
	if micro == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micro).UTC()
}
