package rulefile

import (
	"fmt"

	"github.com/accesslimit/accesslimit/core"
)

// FunctionUse is a rule's use of a function of the service: see [Checked.Functions].
type FunctionUse struct {
	// Rule is the name of the rule.
	Rule string
	// Field is the field of the file that names the function: key, plan, limit_for, cost, estimate,
	// count, note or skip.
	Field string
	// Name is the name of the function, under which the service registers it in [Functions].
	Name string
}

// StandIns returns functions with the names of uses, for programs that read the files of a service
// without its code. Keys, plans and limits are errors that say so. A call costs 1, counts whatever its
// outcome is, has no note, and is not skipped. A use of another field is an error.
func StandIns(uses ...FunctionUse) (Functions, error) {
	f := Functions{
		Keys: make(map[string]core.KeyFunc), Plans: make(map[string]func(core.Request) (string, error)),
		LimitFor: make(map[string]func(core.Request) (core.Limit, error)), Costs: make(map[string]func(core.Request) int),
		Counts: make(map[string]func(int) bool), Notes: make(map[string]func(core.Request) string), Skips: make(map[string]func(core.Request) bool),
	}
	for _, use := range uses {
		unknown := fmt.Errorf("rulefile: only the service knows the %s %q", use.Field, use.Name)
		switch use.Field {
		case "key":
			f.Keys[use.Name] = func(core.Request) (string, error) { return "", unknown }
		case "plan":
			f.Plans[use.Name] = func(core.Request) (string, error) { return "", unknown }
		case "limit_for":
			f.LimitFor[use.Name] = func(core.Request) (core.Limit, error) { return core.Limit{}, unknown }
		case "cost", "estimate":
			f.Costs[use.Name] = func(core.Request) int { return 1 }
		case "count":
			f.Counts[use.Name] = func(int) bool { return true }
		case "note":
			f.Notes[use.Name] = func(core.Request) string { return "" }
		case "skip":
			f.Skips[use.Name] = func(core.Request) bool { return false }
		default:
			return Functions{}, fmt.Errorf("rulefile: %q is no field that names functions: those are key, plan, limit_for, cost, estimate, count, note, skip", use.Field)
		}
	}
	return f, nil
}
