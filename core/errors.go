package core

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/limiter"
)

// The errors of this package are these, *[StoreError], *[RuleError], and that of a context that has
// ended. A refusal is no error: it is a [Decision].
var (
	// ErrStore means that Redis did not answer in time, or answered with an error. errors.Is finds it
	// in a *[StoreError], which has the cause and the class. The class reports whether the call may
	// have been charged. The Decision beside the error is the zero one.
	ErrStore = errors.New("core: the store failed")

	// ErrCostExceedsLimit means that a cost is more than the limit ever lets through at once: more
	// than Max, or for a bucket more than Burst. Waiting cannot help.
	ErrCostExceedsLimit = errors.New("core: the cost is more than the limit can ever allow")

	// ErrDebtExceeded means that a cost that was known afterwards exceeds the bound of a limit's debt.
	// The limit was charged up to that bound. See [Counter.Charge].
	ErrDebtExceeded = errors.New("core: the debt is more than the limit allows")

	// ErrBillUnknown means that there is no such bill: it has expired, at what it was charged, was
	// settled more than five minutes ago, the store has forgotten it, or the call was refused. Nothing
	// was changed.
	ErrBillUnknown = errors.New("core: the bill is not known, or has expired")

	// ErrBillSettled means that a bill was settled before, at another number. Nothing was changed.
	ErrBillSettled = errors.New("core: the bill was settled before")
)

var (
	// errNoLimiter is the error of a nil *Limiter, or a zero one. Methods that return no error panic
	// with it.
	errNoLimiter = &RuleError{Field: "limiter", Why: limiter.NeverMade}
	// errZeroHandle is the error of a handle that no Limiter made.
	errZeroHandle = &RuleError{Field: "handle", Value: "zero", Why: "must be made by a method of Limiter, such as Counter"}
	// errZeroGuard is the error of a Guard or a Check that no Limiter made. Methods that return no
	// error panic with it.
	errZeroGuard = &RuleError{Field: "guard", Why: "was never made: check the error of Limiter.Guard or Limiter.Check"}
)

// errZeroRuleSet is the error of a RuleSet that no Limiter made.
var errZeroRuleSet = &RuleError{Field: "set", Why: "was never made: check the error of Limiter.RuleSet"}

// RuleError names the field of a [Rule], a [Limit], [Options] or a call that is wrong, and says
// why. It is returned when these are made, not later.
type RuleError struct {
	Rule  string // the name of the rule or the handle, or "" if it has none
	Field string // the field as it is spelled in Go, such as Seconds, Ban.For or Plans["pro"]
	// Code stands for one kind of mistake of a rule or a limit, such as no_limit, or is "" for all
	// other mistakes. The codes are stable.
	Code  string
	Value any    // the value of the field
	Why   string // why it is wrong, and what would be right
}

// wrongArgument returns the *RuleError of an argument, a field of one, or a text that is read.
func wrongArgument(rule, field string, value any, why string) error {
	return &RuleError{Rule: rule, Field: field, Value: value, Why: why}
}

// ofLimit returns why a limit is wrong, for an error about the limit as a whole. It includes the
// name of the limit's field.
func (e *RuleError) ofLimit() string {
	if e.Field == "Limit" {
		return e.Why
	}
	return e.Field + " " + e.Why
}

// Error implements error.
func (e *RuleError) Error() string {
	value := fmt.Sprintf("%+v", e.Value) // with the names of fields
	if text, ok := e.Value.(string); ok {
		value = fmt.Sprintf("%q", text)
	}
	if e.Rule == "" {
		return fmt.Sprintf("core: %s = %s: %s", e.Field, value, e.Why)
	}
	return fmt.Sprintf("core: rule %q: %s = %s: %s", e.Rule, e.Field, value, e.Why)
}

// joinRuleErrors returns the errors in order of their rules and texts, each once: several guards of
// a set may find the same. A single one stands for itself.
func joinRuleErrors(wrong []*RuleError) error {
	if len(wrong) == 1 {
		return wrong[0]
	}
	var errs []error
	seen := make(map[string]bool)
	for _, err := range wrong {
		if text := err.Error(); !seen[text] {
			seen[text] = true
			errs = append(errs, err)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// checkSubject checks a subject that an operator passes. A bare address is likely to be a mistake:
// without ip: it is not the subject by which rules count that address. An address with another prefix
// length is no mistake, because handles may count by any.
func checkSubject(name, subject string) error {
	if subject == "" {
		return noSubject(name)
	}
	if _, err := netip.ParseAddr(subject); err == nil {
		return &RuleError{
			Rule: name, Field: "subject", Value: subject,
			Why: "is a bare address, but rules by IP count by another subject: use limiter.IPSubject(addr)",
		}
	}
	return nil
}

func noSubject(name string) error {
	return &RuleError{Rule: name, Field: "subject", Value: "", Why: "must say who is limited, as in user:alice"}
}

// orPanic returns what was made, or panics with the error.
func orPanic[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
