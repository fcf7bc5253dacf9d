package rulefile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
)

// Warning is advice about a rule that is allowed, but probably unwise: see [Checked.Warnings].
type Warning struct {
	// Place is that of the field that the advice is about, or of the rule.
	Place Place
	// Rule is the name of the rule.
	Rule string
	// Code identifies the advice, such as "caller_chooses_key".
	Code string
	// Why says what is unwise, and what to do.
	Why string
}

// String returns the warning with its place, such as
//
//	limits.yaml:4:5: rule "a": limit: 10/s never decides, because 5/m never allows more: ...
func (w Warning) String() string {
	return fmt.Sprintf("%v: rule %s: %s", w.Place, quote(w.Rule), w.Why)
}

// Warnings returns advice about the rules, sorted by place:
//
//   - limits_nobody, unknown_method: no call is in the scope of the rule, or not one with this method;
//   - never_decides: another limit of the rule never allows more;
//   - caller_chooses_key: callers choose what is counted, and no rule counts the same calls by address,
//     user, route or all together;
//   - login_by_account: strangers can lock the owner of an account out;
//   - login_fails_open: passwords can be tried while Redis does not answer;
//   - key_like_function: a key that is not known resembles one that needs no function.
//
// A rule is taken for one of a login by its name and its paths.
func (c *Checked) Warnings() (all []Warning) {
	for _, name := range c.loaded.names() {
		r := c.loaded.rules[name]
		for _, one := range advisers {
			for _, why := range one.advise(c, &r) {
				all = append(all, Warning{r.placeOf(one.fields), name, one.code, why})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column))
	})
	return all
}

// adviser looks for one unwise thing.
type adviser struct {
	code   string
	fields []string // the fields that it is about, of which a rule may lack some
	advise func(*Checked, *placedRule) (whys []string)
}

var advisers = []adviser{
	{"limits_nobody", []string{"except", "skip", "methods"}, (*Checked).limitsNobody},
	{"unknown_method", []string{"methods"}, (*Checked).unknownMethod},
	{"never_decides", []string{"also", "limit", "seconds"}, (*Checked).neverDecides},
	{"caller_chooses_key", []string{"key"}, (*Checked).callerChoosesKey},
	{"login_by_account", []string{"key"}, (*Checked).loginByAccount},
	{"login_fails_open", []string{"on_store_error"}, (*Checked).loginFailsOpen},
	{"key_like_function", []string{"key"}, (*Checked).keyLikeFunction},
}

// placeOf returns the place of the first of these fields that the rule has, or that of the rule.
func (r *placedRule) placeOf(fields []string) Place {
	for _, field := range fields {
		if at, ok := r.places[field]; ok {
			return at
		}
	}
	return r.place
}

// scope returns the calls that the rule applies to.
func (r *placedRule) scope() *pathmatch.Scope {
	scope := pathmatch.NewScope(r.Methods, r.Paths, r.Except)
	return &scope
}

func (c *Checked) limitsNobody(r *placedRule) (whys []string) {
	if why := r.scope().Never(); why != "" {
		whys = append(whys, "the rule limits nobody: "+why)
	}
	return whys
}

func (c *Checked) unknownMethod(r *placedRule) (whys []string) {
	if methods := r.scope().Unregistered(); len(methods) > 0 && r.scope().Never() == "" {
		whys = append(whys, fmt.Sprintf("methods: %s is not a registered method: look for a misspelling", strings.Join(methods, ", ")))
	}
	return whys
}

// keyLikeFunction looks for keys that are taken for functions, and may be misspelled.
func (c *Checked) keyLikeFunction(r *placedRule) (whys []string) {
	if !c.guessed {
		return nil
	}
	for _, use := range r.uses {
		if like := closest(use.Name, slices.Sorted(maps.Keys(plainKeys))); use.Field == "key" && like != "" {
			whys = append(whys, fmt.Sprintf("key = %s: is taken for a function of the service (did you mean %q?)", quote(use.Name), like))
		}
	}
	return whys
}

// neverDecides looks for limits that refuse no call which fits another limit of the rule. Plans
// and computed limits take the place of the rule's own, so that does not always hold.
func (c *Checked) neverDecides(r *placedRule) (whys []string) {
	always := slices.Clone(r.Also)
	if r.Plans == nil && r.LimitFor == nil {
		always = append(always, ownLimit(&r.Rule))
	}
	for _, limit := range r.limits() {
		for _, wider := range always {
			if limit.Limit != wider && isMootBeside(limit.Limit, wider) {
				whys = append(whys, fmt.Sprintf("%s: %v never decides, because %v never allows more: leave it out, or correct a number",
					limit.field, limit.Limit, wider))
				break
			}
		}
	}
	return whys
}

// fieldLimit is a limit, and the field of a file that has it.
type fieldLimit struct {
	field string
	core.Limit
}

// limits returns all limits of the rule.
func (r *placedRule) limits() []fieldLimit {
	all := []fieldLimit{{"limit", ownLimit(&r.Rule)}}
	for _, limit := range r.Also {
		all = append(all, fieldLimit{"also", limit})
	}
	for _, plan := range slices.Sorted(maps.Keys(r.Plans)) {
		all = append(all, fieldLimit{"plans." + plan, r.Plans[plan]})
	}
	return all
}
