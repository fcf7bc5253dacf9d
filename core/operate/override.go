package operate

import (
	"math"
	"strconv"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
)

// Override is what applies to one subject in place of a rule's own limit: exactly one of Max,
// Unlimited and Blocked. See [Operator.Overrides] and Rule.Overrides.
type Override struct {
	// Max is the number of permits in the Window of the rule's own limit, counted by its Algorithm.
	// It has the same bounds as Limit.Max.
	Max int `json:"max,omitzero"`
	// Burst is the Burst of a bucket. Unset, it is Max. Other algorithms have none.
	Burst int `json:"burst,omitzero"`
	// Unlimited lets all calls of the subject pass. Neither the rule's own limit nor its Also
	// counts them. A ban still holds.
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
	// Ignored says why the override does not apply, or is empty: it was made for another Window or
	// Algorithm than those of the rule's own limit, or it was not written by this library.
	Ignored string `json:"ignored,omitzero"`
}

// String returns a short description, such as "500 burst 1000 until 2026-12-01T00:00:00Z".
func (o Override) String() string {
	text := ""
	switch {
	case o.Unlimited:
		text = "unlimited"
	case o.Blocked:
		text = "blocked"
	case o.Max == 0:
		return o.Ignored
	default:
		text = strconv.Itoa(o.Max)
		if o.Burst != 0 {
			text += " burst " + strconv.Itoa(o.Burst)
		}
	}
	if !o.Until.IsZero() {
		text += " until " + o.Until.UTC().Format(time.RFC3339Nano)
	}
	return text
}

// check returns what is wrong with the override by itself, or nil.
func (o *Override) check() *core.RuleError {
	wrong := func(field string, value any, why string) *core.RuleError {
		return &core.RuleError{Field: field, Value: value, Why: why}
	}
	kinds := 0
	for _, is := range [...]bool{o.Max != 0, o.Unlimited, o.Blocked} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return wrong("Override", *o, "must have exactly one of Max, Unlimited and Blocked")
	case o.Burst != 0 && o.Max == 0:
		return wrong("Override.Burst", o.Burst, "goes with Max only")
	case len(o.Note) > algorithm.MaxOverrideNote:
		return wrong("Override.Note", strconv.Itoa(len(o.Note))+" bytes", "must have at most 1024 bytes")
	case !o.Until.IsZero() && o.Until.UnixMicro() <= 0:
		return wrong("Override.Until", o.Until, overAlready)
	case o.Until.UnixMicro() >= maxOverrideEnd:
		return wrong("Override.Until", o.Until, "must be before the year 2255, or unset")
	}
	return nil
}

const (
	overAlready = "is over already, by the clock of Redis"
	// maxOverrideEnd is the first time, in microseconds, that is not stored.
	maxOverrideEnd = 1 << 53
)

// stored returns the stored form of an override that was checked, for rules of a name.
func (o *Override) stored(rules limiter.Front[core.Rule], name string) (stored algorithm.Override, err error) {
	if o.Max != 0 {
		stored, err = rules.Override(name, o.Max, o.Burst)
	} else {
		var own *algorithm.Limit
		if own, err = rules.Overridable(name); err == nil {
			stored = algorithm.Override{What: algorithm.OverrideUnlimited, Span: own.Span()}
		}
	}
	if o.Blocked {
		stored.What = algorithm.OverrideBlocked
	}
	if !o.Until.IsZero() {
		stored.Ends = o.Until.UnixMicro()
	}
	stored.Note = o.Note
	return stored, err
}

// readOverride returns an override from its stored form. The limit is the rule's own, or nil if no
// rule has overrides any more.
func readOverride(subject, text string, own *algorithm.Limit) Override {
	o := Override{Subject: subject}
	stored, err := algorithm.ReadOverride(text)
	if err != nil {
		o.Ignored = err.Error()
		return o
	}
	o.Max, o.Burst = permits(stored.Max), permits(stored.Burst)
	o.Unlimited, o.Blocked = stored.What == algorithm.OverrideUnlimited, stored.What == algorithm.OverrideBlocked
	o.Author, o.Note, o.Since = stored.Author, stored.Note, time.UnixMicro(stored.Set).UTC()
	if stored.Ends > 0 {
		o.Until = time.UnixMicro(stored.Ends).UTC()
	}
	if own == nil {
		o.Ignored = "belongs to a name of which this process has no rule with Overrides"
	} else if _, err := stored.For(own); err != nil {
		o.Ignored = err.Error()
	}
	return o
}

// permits returns a number of permits, or the largest int if that is smaller.
func permits(n int64) int { return int(min(n, math.MaxInt)) }
