package core

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
)

// Override is what applies to one subject in place of a rule's own limit: exactly one of Max,
// Unlimited and Blocked. See Rule.Overrides.
type Override struct {
	// Max is the number of permits in the Window of the rule's own limit, counted by its Algorithm.
	// It has the same bounds as Limit.Max.
	Max int `json:"max,omitzero"`
	// Burst is the Burst of a bucket. Unset, it is Max. Other algorithms have none.
	Burst int `json:"burst,omitzero"`
	// Unlimited lets all calls of the subject pass. Neither the rule's own limit nor its Also
	// counts them. A ban still holds.
	Unlimited bool `json:"unlimited,omitzero"`
	// Blocked refuses all calls of the subject, with the Reason [Blocked].
	Blocked bool `json:"blocked,omitzero"`
	// Until is when the override ends, by the clock of Redis. Unset, it holds until it is removed.
	Until time.Time `json:"until,omitzero"`
	// Note says why, in at most 1024 bytes. Unset, it is the note of operate.WithActor.
	Note string `json:"note,omitzero"`

	// The fields below are filled in by Get and List. Set ignores them.

	// Subject is the subject that the override is for.
	Subject string `json:"subject,omitzero"`
	// Author is that of operate.WithActor. Since is when the override was set, by the clock of Redis.
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

// Overridable implements service.Front.
func (f *front) Overridable(name string) (own *algorithm.Limit, err error) {
	limit, err := f.overridable(name)
	if err != nil {
		return nil, err
	}
	return &prepare(limit).compiled, nil
}

// overridable returns the rule's own limit.
func (f *front) overridable(name string) (own Limit, err error) {
	own, ok := f.registry.names.overridable(name)
	if !ok {
		return Limit{}, &RuleError{
			Rule: name, Field: "Overrides", Value: false,
			Why: "must be set in a rule of this name that is attached to this Limiter, or by WithOverrides of a handle",
		}
	}
	return own, nil
}

// Override implements service.Front.
func (f *front) Override(name string, permits, burst int) (algorithm.Override, error) {
	own, err := f.overridable(name)
	if err != nil {
		return algorithm.Override{}, err
	}
	compiled := &prepare(own).compiled
	own.Max, own.Burst = permits, burst
	if _, err := own.compile(); err != nil {
		wrong := *err.(*RuleError)
		wrong.Rule, wrong.Field = name, "Override."+wrong.Field
		return algorithm.Override{}, &wrong
	}
	stored, err := compiled.Override(int64(permits), int64(burst))
	if err != nil {
		return stored, &RuleError{Rule: name, Field: "Override.Max", Value: permits, Why: err.Error()}
	}
	return stored, nil
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
	o.Max, o.Burst = permitsOf(stored.Max), permitsOf(stored.Burst)
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

// checkOverrides checks what does not go with Overrides. The plans are compared with the rule's own
// limit if that is sound.
func (c *ruleCheck) checkOverrides(sound bool) {
	if !c.Overrides {
		return
	}
	if c.Name == "" {
		c.add("Overrides", "overrides_without_name", true, "needs a Name, by which overrides are set")
	}
	if c.Lease != 0 {
		c.add("Lease", "lease_and_overrides", c.Lease, "cannot be combined with Overrides: calls with leased permits do not ask Redis, so they would miss an override")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plans)) {
		if limit := c.Plans[name]; sound && limit.wrong() == nil && !limit.sharesCounter(c.limit()) {
			c.add(planField(name), codeNotOverridable, limit, notOverridable)
		}
	}
}

// codeNotOverridable and notOverridable say why a limit cannot stand in place of the own limit of a
// rule with Overrides.
const (
	codeNotOverridable = "not_overridable"
	notOverridable     = "must have the span and the algorithm of the rule's own limit, because Overrides are made for those"
)
