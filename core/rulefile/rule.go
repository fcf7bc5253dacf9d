package rulefile

import (
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core"
)

// ruleReader makes a core.Rule of a mapping.
type ruleReader struct {
	*checker
	functions *Functions
	node      *yaml.Node
	rule      core.Rule
}

// readRule returns the rule of a mapping that was checked. Fields with an error stay unset.
func (c *checker) readRule(n *yaml.Node, functions *Functions) *ruleReader {
	r := &ruleReader{checker: c, functions: functions, node: n}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i].Value, n.Content[i+1]
		set := setters[name]
		if set == nil || get(n, name) != value {
			continue
		}
		if !c.bad[value] || name == "skip" && value.Kind == yaml.MappingNode { // readSkip looks inside
			set(r, value)
		}
	}
	return r
}

// setters set the fields of a rule to checked values.
var setters = map[string]func(*ruleReader, *yaml.Node){
	"name":       func(r *ruleReader, n *yaml.Node) { r.rule.Name = n.Value },
	"limit":      func(r *ruleReader, n *yaml.Node) { r.rule.Limit = limitOf(n.Value) },
	"seconds":    func(r *ruleReader, n *yaml.Node) { r.rule.Seconds = numberOf(n.Value) },
	"max_count":  func(r *ruleReader, n *yaml.Node) { r.rule.MaxCount = numberOf(n.Value) },
	"also":       func(r *ruleReader, n *yaml.Node) { r.rule.Also = limitsOf(n) },
	"need_login": func(r *ruleReader, n *yaml.Node) { r.rule.NeedLogin = n.Value == "true" },
	"key":        (*ruleReader).readKey,
	"cost":       func(r *ruleReader, n *yaml.Node) { r.rule.Cost = function(r, r.functions.Costs, n, "cost", "Costs") },
	"plans":      func(r *ruleReader, n *yaml.Node) { r.rule.Plans = plansOf(n) },
	"plan":       func(r *ruleReader, n *yaml.Node) { r.rule.Plan = function(r, r.functions.Plans, n, "plan", "Plans") },
	"limit_for": func(r *ruleReader, n *yaml.Node) {
		r.rule.LimitFor = function(r, r.functions.LimitFor, n, "limit_for", "LimitFor")
	},
	"count": func(r *ruleReader, n *yaml.Node) {
		r.rule.Count = function(r, r.functions.Counts, n, "count", "Counts")
	},
	"note":           func(r *ruleReader, n *yaml.Node) { r.rule.Note = function(r, r.functions.Notes, n, "note", "Notes") },
	"ban":            (*ruleReader).readBan,
	"overrides":      func(r *ruleReader, n *yaml.Node) { r.rule.Overrides = n.Value == "true" },
	"mode":           func(r *ruleReader, n *yaml.Node) { r.rule.Mode, _ = modeOf(n.Value) },
	"warn":           func(r *ruleReader, n *yaml.Node) { r.rule.Warn = fractionsOf(n) },
	"skip":           (*ruleReader).readSkip,
	"paths":          func(r *ruleReader, n *yaml.Node) { r.rule.Paths = textsOf(n) },
	"except":         func(r *ruleReader, n *yaml.Node) { r.rule.Except = append(r.rule.Except, textsOf(n)...) },
	"methods":        func(r *ruleReader, n *yaml.Node) { r.rule.Methods = textsOf(n) },
	"lease":          func(r *ruleReader, n *yaml.Node) { r.rule.Lease = numberOf(n.Value) },
	"on_store_error": func(r *ruleReader, n *yaml.Node) { r.rule.OnStoreError, _ = storePolicyOf(n.Value) },
	"message":        func(r *ruleReader, n *yaml.Node) { r.rule.Message = n.Value },
}

// function returns the registered function that a text names, or nil after adding what is wrong.
func function[F any](r *ruleReader, functions map[string]F, n *yaml.Node, label, in string) F {
	if r.anyFunction && n.Value != "" {
		return madeUp[F]()
	}
	f, why := named(functions, n.Value, in)
	if why != "" {
		r.fail(n, valued(label, n), why)
		r.bad[n] = true
	}
	return f
}

// madeUp returns a function that stands for one of another process. It is never called.
func madeUp[F any]() F {
	return reflect.MakeFunc(reflect.TypeFor[F](), func([]reflect.Value) []reflect.Value {
		panic("rulefile: a document is checked without its functions")
	}).Interface().(F)
}

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

func (r *ruleReader) readBan(n *yaml.Node) {
	if r.rule.Ban = banOf(n); r.rule.Ban == (core.Ban{}) {
		r.fail(n, "ban", "bans nobody: set after and for, or by_hand, or leave it out")
		r.bad[n] = true
	}
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
	if byHand := get(n, "by_hand"); byHand != nil {
		ban.ByHand = byHand.Value == "true"
	}
	return ban
}
