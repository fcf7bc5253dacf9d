package rulefile

import (
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// ruleReader makes a core.Rule from a mapping.
type ruleReader struct {
	*checker
	functions *Functions
	node      *yaml.Node
	rule      core.Rule
	written
}

// readRule returns the rule of a mapping that was checked. Fields with an error stay unset.
func (c *checker) readRule(n *yaml.Node, functions *Functions) *ruleReader {
	r := &ruleReader{checker: c, functions: functions, node: n, written: written{places: make(map[string]Place)}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i].Value, n.Content[i+1]
		f := rulefield.InFile(name)
		if f == nil || get(n, name) != value {
			continue
		}
		r.places[name] = Place{c.file, value.Line, value.Column}
		if !c.bad[value] || f.Form == rulefield.Skip && value.Kind == yaml.MappingNode { // readSkip looks inside
			forms[f.Form].read(r, f, value)
		}
	}
	return r
}

// readFunction sets a field to the registered function of a name.
func (r *ruleReader) readFunction(f *rulefield.Field, n *yaml.Node) {
	r.field(f).Set(r.function(f, n, f.File()))
}

// function returns the function with this name among those registered for a field. If there is
// none, it adds an error and returns the zero value.
func (r *ruleReader) function(f *rulefield.Field, n *yaml.Node, label string) reflect.Value {
	functions := reflect.ValueOf(r.functions).Elem().FieldByName(f.Functions)
	r.uses = append(r.uses, FunctionUse{r.name, f.File(), n.Value})
	if r.anyFunction && n.Value != "" {
		return madeUp(functions.Type().Elem())
	}
	found := functions.MapIndex(reflect.ValueOf(n.Value))
	if !found.IsValid() {
		r.fail(n, valued(label, n), unregistered(functions, n.Value, f.Functions))
		r.bad[n] = true
		return reflect.Zero(functions.Type().Elem())
	}
	return found
}

// madeUp returns a function that stands in for a function of another process. It is never called.
func madeUp(of reflect.Type) reflect.Value {
	return reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value {
		panic("rulefile: a document is checked without its functions")
	})
}

func scalarOf(n *yaml.Node) string { return n.Value }

func isTrue(n *yaml.Node) bool { return n.Value == "true" }

func textsOf(n *yaml.Node) (texts []string) {
	for _, item := range n.Content {
		texts = append(texts, item.Value)
	}
	return texts
}

func fractionsOf(n *yaml.Node) (fractions []float64) {
	for _, item := range n.Content {
		fractions = append(fractions, fractionOf(item.Value))
	}
	return fractions
}

func limitsOf(n *yaml.Node) (limits []core.Limit) {
	for _, item := range n.Content {
		limits = append(limits, limitOf(item.Value))
	}
	return limits
}

func plansOf(n *yaml.Node) map[string]core.Limit {
	plans := make(map[string]core.Limit)
	for i := 0; i+1 < len(n.Content); i += 2 {
		plans[n.Content[i].Value] = limitOf(n.Content[i+1].Value)
	}
	return plans
}

func (r *ruleReader) readBan(_ *rulefield.Field, n *yaml.Node) {
	if r.rule.Ban = banOf(n); r.rule.Ban == (core.Ban{}) {
		r.fail(n, "ban", "bans nobody: set after and for, or leave it out")
		r.bad[n] = true
	}
}

func billOf(n *yaml.Node) (bill core.BillTerms) {
	if debt := get(n, "max_debt"); debt != nil {
		bill.MaxDebt = fractionOf(debt.Value)
	}
	if estimate := get(n, "max_estimate"); estimate != nil {
		bill.MaxEstimate = fractionOf(estimate.Value)
	}
	return bill
}

func banOf(n *yaml.Node) (ban core.Ban) {
	if after := get(n, "after"); after != nil {
		ban.After = numberOf(after.Value)
	}
	if span := get(n, "for"); span != nil {
		ban.For = spanOf(span.Value)
	}
	if longest := get(n, "max"); longest != nil {
		ban.Max = spanOf(longest.Value)
	}
	return ban
}
