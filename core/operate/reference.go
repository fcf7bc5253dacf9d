package operate

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/reference"
)

// Reference describes a refusal. If Options.ReferenceKeys is set, a refusal carries it as an
// encrypted text, which [Operator.ExplainReference] reads.
type Reference struct {
	// Time is when the call was refused, by the clock of the process that refused it.
	Time time.Time
	// Rule is the Decision's Rule, or the first 64 bytes of it.
	Rule string
	// Reason is why the call was refused.
	Reason core.Reason
	// Limit is the limit that decided.
	Limit core.Limit
	// Remaining is the number of permits that were left. It is 0 if no counter was asked.
	Remaining int
	// Wait is how long the caller was told to wait, rounded up to the millisecond, or 0.
	Wait time.Duration
	// Digest is a keyed digest of the subject in hex, or "" if the subject was not known. It is the
	// same in all references about one subject that were made with one key.
	Digest string

	key *reference.Key // what made the Digest
}

// About reports whether the reference is about this subject, such as user:alice or the result of
// [core.Limiter.IPSubject]. If the subject was not known, for example because a login was missing,
// the reference is about nobody.
func (r Reference) About(subject string) bool {
	return r.key != nil && r.Digest != "" && r.Digest == digestText(r.key.Digest(subject))
}

func digestText(digest [8]byte) string { return hex.EncodeToString(digest[:]) }

// String returns the reference in words:
//
//	refused by "reply" at 2026-11-22T14:03:07.123456Z: limit_exceeded, 0 left of 5/m, wait 12.5s
func (r Reference) String() string {
	text := fmt.Appendf(nil, "refused by %q at %s: %s, ", r.Rule, r.Time.UTC().Format(time.RFC3339Nano), r.Reason)
	if r.Reason == core.LimitExceeded {
		text = fmt.Appendf(text, "%d left of ", r.Remaining)
	}
	text = append(text, r.Limit.String()...)
	if r.Wait > 0 {
		text = fmt.Appendf(text, ", wait %v", r.Wait)
	}
	return string(text)
}

// ExplainReference reads the reference of a refusal. Any process with the same
// Options.ReferenceKeys may have made it. Case, spaces and hyphens make no difference, and the
// letters O, I and L may stand for the digits 0, 1 and 1. The error is a *[core.RuleError]: the
// text is not a reference, or part of it is missing or was changed, or it was made with a key that
// is not in Options.ReferenceKeys.
func (o *Operator) ExplainReference(text string) (Reference, error) {
	if err := o.made(); err != nil {
		return Reference{}, err
	}
	wrong := func(why string) (Reference, error) {
		return Reference{}, &core.RuleError{Field: "reference", Value: fmt.Sprintf("%.300s", text), Why: why}
	}
	if len(o.parts.References) == 0 {
		return wrong("cannot be read without Options.ReferenceKeys")
	}
	c, key, err := o.parts.References.Open(text)
	if err != nil {
		return wrong(err.Error())
	}
	limit, err := core.ParseLimit(c.Limit)
	reason, known := reference.ReasonOf(c.Reason)
	if err != nil || !known {
		return wrong("was made by a later version of the library, which knows more limits and reasons")
	}
	r := Reference{
		Time: time.UnixMicro(c.Time), Rule: c.Rule, Reason: core.Reason(reason), Limit: limit,
		Remaining: permits(c.Remaining), Wait: time.Duration(c.Wait) * time.Millisecond, key: key,
	}
	if c.Digest != [8]byte{} {
		r.Digest = digestText(c.Digest)
	}
	return r, nil
}
