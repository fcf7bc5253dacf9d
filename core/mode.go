package core

import (
	"fmt"
	"slices"
)

// Mode is what a rule does with the calls that do not fit. The zero value is Enforce.
type Mode uint8

const (
	// Enforce refuses them.
	Enforce Mode = iota
	// Soft refuses nobody, but tells the handler. A call that fits is charged. One that does not fit
	// goes on, is not charged by this rule, and does not keep other rules from being charged. If no
	// other rule refuses it, its Decision has the Reason [SoftExceeded], and the handler finds that
	// by [DecisionFrom], even without Options.Expose. Inside a handler, [Check.Allow] returns it in
	// Answer.Context. So a service can answer with less, or later, instead of not at all. The limits
	// of Also are charged with the rule's own, or none of them is.
	//
	// Callers see a soft limit in headers only if no other rule of the middleware is shown there,
	// and never a Retry-After. With NeedLogin, callers who are not logged in are not counted. If Key
	// or Identify fails, the call goes on uncounted. A cost above the limit, and a subject that is
	// Blocked by an override, are SoftExceeded.
	//
	// The rule needs a Name, and all rules of this Name must be Soft. It cannot have Ban, Lease, or
	// OnStoreError: FailClosed. A call with a soft rule always asks the store, even if another rule
	// refused the same call just before.
	Soft
	// DryRun counts and decides as Enforce does, but refuses nobody: a call that does not fit has the
	// Reason DryRunExceeded. The rule has counters of its own, so nothing counted meanwhile is held
	// against callers when it is enforced.
	//
	// Neither callers nor handlers notice it. Its functions run in the call. It asks Redis in the
	// background, once the call has been answered by the other rules. If they refused the call, it
	// only looks. OnDecision receives its Decision then, by itself. At most 1,000 calls of a Limiter
	// wait for that, and further ones are dropped, which Stats.DryRunsDropped counts.
	DryRun
)

// modes are the text forms of the modes.
var modes = [...]string{Enforce: "enforce", Soft: "soft", DryRun: "dry_run"}

// known reports whether a rule can have this mode.
func (m Mode) known() bool { return int(m) < len(modes) }

// String returns the mode in its text form: enforce, soft or dry_run.
func (m Mode) String() string {
	if !m.known() {
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
	return modes[m]
}

// MarshalText implements encoding.TextMarshaler. It returns what String does.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It reads what String returns of the three
// modes. The error is a *[RuleError], and leaves m unchanged.
func (m *Mode) UnmarshalText(text []byte) error {
	at := slices.Index(modes[:], string(text))
	if at < 0 {
		return wrongArgument("", "Mode", string(text), "must be enforce, soft or dry_run")
	}
	*m = Mode(at)
	return nil
}
