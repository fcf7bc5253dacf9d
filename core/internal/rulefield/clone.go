package rulefield

import "reflect"

// Clone returns a rule with its own copies of all lists and maps, also of fields to come. It shares
// texts, which core's own clone copies, because a framework may have lent them.
func Clone[Rule any](rule Rule) Rule {
	for _, v := range reflect.ValueOf(&rule).Elem().Fields() {
		switch {
		case v.Kind() == reflect.Slice:
			v.Set(reflect.AppendSlice(reflect.Zero(v.Type()), v))
		case v.Kind() == reflect.Map && !v.IsNil():
			clone := reflect.MakeMap(v.Type())
			for key, value := range v.Seq2() {
				clone.SetMapIndex(key, value)
			}
			v.Set(clone)
		}
	}
	return rule
}
