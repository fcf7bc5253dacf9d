package core

import (
	"errors"
	"fmt"
)

// Every error that this package makes. Being refused is not among them: that is a [Decision].
var (
	// ErrStore says that Redis could not answer in time. It comes as a *StoreError, which has the cause and its class: whether
	// the call may have been charged. The Decision beside it is the zero one.
	ErrStore = errors.New("core: the store did not answer")

	// ErrCostExceedsLimit says that a cost is more than the limit ever lets through at once, so that waiting cannot help:
	// more than Max, or for a bucket more than Burst.
	ErrCostExceedsLimit = errors.New("core: the cost is more than the limit can ever allow")
)

// RuleError says which field of a [Rule], a [Limit], [Options] or a call is wrong, and why. It comes when these are made,
// never later.
type RuleError struct {
	Rule  string // the rule's name, "" when it has none
	Field string // as it is spelled in Go; Options.Prefix for a field of Options
	Value any    // what the field holds
	Why   string // what is wrong with it, and what would be right
}

// Error implements error.
func (e *RuleError) Error() string {
	value := fmt.Sprintf("%v", e.Value)
	if text, ok := e.Value.(string); ok {
		value = fmt.Sprintf("%q", text)
	}
	if e.Rule == "" {
		return fmt.Sprintf("core: %s = %s: %s", e.Field, value, e.Why)
	}
	return fmt.Sprintf("core: rule %q: %s = %s: %s", e.Rule, e.Field, value, e.Why)
}
