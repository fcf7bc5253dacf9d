package rulefile

import (
	"encoding"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/accesslimit/accesslimit/core/internal/pathmatch"
	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

// form says how the values of some fields of a rule are checked and read.
type form struct {
	shape func(*rulefield.Field) *shape
	read  func(*ruleReader, *rulefield.Field, *yaml.Node)
}

var forms = map[rulefield.Form]form{
	rulefield.Text:        {always(messageShape), set(scalarOf)},
	rulefield.Name:        {always(nameShape), set(scalarOf)},
	rulefield.Number:      {numberShape, set(func(n *yaml.Node) int { return numberOf(n.Value) })},
	rulefield.Truth:       {always(trueOrFalse), set(isTrue)},
	rulefield.Fractions:   {fractionsShape, set(fractionsOf)},
	rulefield.Limit:       {always(limitShape), unmarshal},
	rulefield.Limits:      {always(limitsShape), set(limitsOf)},
	rulefield.Plans:       {always(plansShape), set(plansOf)},
	rulefield.Function:    {always(functionShape), (*ruleReader).readFunction},
	rulefield.Key:         {always(keyShape), (*ruleReader).readKey},
	rulefield.Ban:         {always(banShape), (*ruleReader).readBan},
	rulefield.Bill:        {always(billShape), set(billOf)},
	rulefield.Mode:        {always(modeShape), unmarshal},
	rulefield.Skip:        {always(skipShape), (*ruleReader).readSkip},
	rulefield.Patterns:    {always(pathsShape), add},
	rulefield.Methods:     {always(methodsShape), add},
	rulefield.StorePolicy: {always(storeShape), unmarshal},
}

// always returns the shape of a form that does not depend on the field.
func always(of func() *shape) func(*rulefield.Field) *shape {
	return func(*rulefield.Field) *shape { return of() }
}

func messageShape() *shape { return &shape{kind: text, like: "a text", quotable: true} }

func numberShape(f *rulefield.Field) *shape { return numberFrom(f.Least, f.Most) }

func fractionsShape(f *rulefield.Field) *shape {
	return &shape{kind: listing, like: "a list of fractions such as [0.8, 1]", item: fractionUpTo(1), most: f.Most}
}

func limitsShape() *shape { return listOf(limitShape()) }

func pathsShape() *shape { return listOf(pathShape()) }

func methodsShape() *shape {
	return listOf(&shape{kind: text, like: "an HTTP method", wrong: pathmatch.CheckMethod})
}

// field returns a field of the rule that is being read.
func (r *ruleReader) field(f *rulefield.Field) reflect.Value {
	return reflect.ValueOf(&r.rule).Elem().FieldByName(f.Name)
}

// set returns a function that sets a field to the result of value for its text.
func set[T any](value func(*yaml.Node) T) func(*ruleReader, *rulefield.Field, *yaml.Node) {
	return func(r *ruleReader, f *rulefield.Field, n *yaml.Node) { r.field(f).Set(reflect.ValueOf(value(n))) }
}

// add adds texts to a list. The field skip adds to the list of except, too.
func add(r *ruleReader, f *rulefield.Field, n *yaml.Node) {
	to := r.field(f)
	to.Set(reflect.AppendSlice(to, reflect.ValueOf(textsOf(n))))
}

// unmarshal sets a field by its type's UnmarshalText. The text was checked before.
func unmarshal(r *ruleReader, f *rulefield.Field, n *yaml.Node) {
	_ = r.field(f).Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value))
}
