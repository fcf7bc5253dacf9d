package rulefile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/core"
)

// Functions holds the functions that rules in a file can name, because a file cannot hold
// functions. A file that names any other function is wrong. [Load] does not keep the maps.
type Functions struct {
	// Keys are for the field key, beside the keys that need no function. See [core.Rule].Key.
	Keys map[string]core.KeyFunc
	// Plans are for the field plan, and return the caller's plan. See [core.Rule].Plan.
	Plans map[string]func(core.Request) (string, error)
	// LimitFor are for the field limit_for. See [core.Rule].LimitFor.
	LimitFor map[string]func(core.Request) (core.Limit, error)
	// Costs are for the fields cost, such as core.CostBySize(65536), and estimate. See [core.Rule].Cost and
	// [core.Rule].Estimate.
	Costs map[string]func(core.Request) int
	// Counts are for the field count. See [core.Rule].Count.
	Counts map[string]func(status int) bool
	// Notes are for the field note. See [core.Rule].Note.
	Notes map[string]func(core.Request) string
	// Skips are for the field skip. See [core.Rule].Skip.
	Skips map[string]func(core.Request) bool
}

// clone returns copies of the maps.
func (f Functions) clone() Functions {
	return Functions{
		maps.Clone(f.Keys), maps.Clone(f.Plans), maps.Clone(f.LimitFor), maps.Clone(f.Costs),
		maps.Clone(f.Counts), maps.Clone(f.Notes), maps.Clone(f.Skips),
	}
}

// plainKeys are the keys that consist of a single word.
var plainKeys = map[string]core.KeyFunc{
	"ip": core.ByIP, "user": core.ByUser, "host": core.ByHost, "route": core.ByRoute, "global": core.Global,
}

// parametricKeys are the keys that consist of a word and a name, such as header:X-Api-Key.
var parametricKeys = map[string]func(name string) core.KeyFunc{
	"header": core.ByHeader, "query": core.ByQuery, "param": core.ByParam,
	"value": func(name string) core.KeyFunc { return core.ByValue(name) },
}

// check returns an error if a name cannot be used, or names no function.
func (f Functions) check() error {
	all := reflect.ValueOf(f)
	for i := range all.NumField() {
		entries := all.Field(i).MapRange()
		for entries.Next() {
			name, in := entries.Key().String(), all.Type().Field(i).Name
			switch {
			case name == "":
				return fmt.Errorf("rulefile: Functions.%s has a function without a name", in)
			case entries.Value().IsNil():
				return fmt.Errorf("rulefile: Functions.%s[%q] is nil", in, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Keys)) {
		prefix, _, parametric := strings.Cut(name, ":")
		if plainKeys[name] != nil || parametric && parametricKeys[prefix] != nil {
			return fmt.Errorf("rulefile: Functions.Keys[%q] has the name of a key that needs no function", name)
		}
	}
	return nil
}

// unregistered says that none of the functions has a name.
func unregistered(functions reflect.Value, name, in string) string {
	var known []string
	for _, key := range functions.MapKeys() {
		known = append(known, key.String())
	}
	slices.Sort(known)
	return fmt.Sprintf("is not registered in Functions.%s%s; registered: %s", in, didYouMean(name, known), list(known))
}
