package rulefield

import (
	"fmt"
	"reflect"
	"strings"
)

// Traits returns what a rule does besides counting calls by its limits, in words such as "skips some
// calls" and "leases 100".
func Traits[Rule any](rule *Rule) (traits []string) {
	of := reflect.ValueOf(rule).Elem()
	for i := range Table {
		if f := &Table[i]; f.Words != "" && isSet(of.FieldByName(f.Name)) {
			traits = append(traits, f.trait(of.FieldByName(f.Name)))
		}
	}
	return traits
}

// isSet reports whether a field has a value. An empty list or map is none.
func isSet(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() > 0
	}
	return !v.IsZero()
}

// trait returns the field's words with a value.
func (f *Field) trait(v reflect.Value) string {
	switch {
	case !strings.Contains(f.Words, "%"):
		return f.Words
	case v.Kind() == reflect.String:
		return fmt.Sprintf(f.Words, v)
	case v.Kind() == reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = fmt.Sprint(v.Index(i))
		}
		return fmt.Sprintf(f.Words, strings.Join(items, " and "))
	default:
		return fmt.Sprintf(f.Words, strings.ReplaceAll(fmt.Sprint(v), "_", " "))
	}
}
