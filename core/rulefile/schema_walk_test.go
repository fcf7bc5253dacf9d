package rulefile

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// validate returns what a schema says is wrong with a value, or "". It knows the words that
// schema.json uses and panics for any other, because a module for it would become a dependency of
// every user of this one.
func validate(schema map[string]any, value any) string {
	for word, argument := range schema {
		check, ok := words[word]
		if !ok {
			panic("the schema has the word " + word)
		}
		if check == nil {
			continue
		}
		if wrong := check(argument, value, schema); wrong != "" {
			return wrong
		}
	}
	return ""
}

// words are the words of JSON Schema; those that are nil only explain.
var words map[string]func(argument, value any, schema map[string]any) string

func init() {
	words = map[string]func(argument, value any, schema map[string]any) string{
		"$schema": nil, "title": nil, "description": nil,
		"type":    hasType,
		"const":   func(a, v any, _ map[string]any) string { return unless(number64(v) == a, "const") },
		"minimum": func(a, v any, _ map[string]any) string { return unless(number64(v) >= a.(float64), "minimum") },
		"maximum": func(a, v any, _ map[string]any) string { return unless(number64(v) <= a.(float64), "maximum") },
		"exclusiveMinimum": func(a, v any, _ map[string]any) string {
			return unless(number64(v) > a.(float64), "exclusiveMinimum")
		},
		"minLength": func(a, v any, _ map[string]any) string { return unless(size(v) >= a.(float64), "minLength") },
		"maxLength": func(a, v any, _ map[string]any) string { return unless(size(v) <= a.(float64), "maxLength") },
		"pattern": func(a, v any, _ map[string]any) string {
			text, ok := v.(string)
			return unless(!ok || compiled(a.(string)).MatchString(text), "pattern")
		},
		"minItems":      func(a, v any, _ map[string]any) string { return unless(size(v) >= a.(float64), "minItems") },
		"maxItems":      func(a, v any, _ map[string]any) string { return unless(size(v) <= a.(float64), "maxItems") },
		"minProperties": func(a, v any, _ map[string]any) string { return unless(size(v) >= a.(float64), "minProperties") },
		"maxProperties": func(a, v any, _ map[string]any) string { return unless(size(v) <= a.(float64), "maxProperties") },
		"items":         eachItem, "uniqueItems": differ, "required": hasAll, "dependencies": dependencies,
		"properties": nil, "additionalProperties": eachProperty, "propertyNames": eachName,
		"anyOf": func(a, v any, _ map[string]any) string { return unless(matches(a, v) > 0, "anyOf") },
		"oneOf": func(a, v any, _ map[string]any) string { return unless(matches(a, v) == 1, "oneOf") },
		"not":   func(a, v any, _ map[string]any) string { return unless(matches([]any{a}, v) == 0, "not") },
	}
}

var patterns = make(map[string]*regexp.Regexp)

func compiled(pattern string) *regexp.Regexp {
	if patterns[pattern] == nil {
		patterns[pattern] = regexp.MustCompile(pattern)
	}
	return patterns[pattern]
}

func unless(right bool, word string) string {
	if right {
		return ""
	}
	return word
}

// number64 returns a number, or 1 for another value, which hasType refuses.
func number64(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case float64:
		return v
	}
	return 1
}

func size(v any) float64 {
	switch v := v.(type) {
	case string:
		return float64(utf8.RuneCountInString(v))
	case []any:
		return float64(len(v))
	case map[string]any:
		return float64(len(v))
	}
	return 1
}

func hasType(argument, value any, _ map[string]any) string {
	got := "other"
	switch v := value.(type) {
	case string, time.Time: // to YAML a date is a time, to JSON a text
		got = "string"
	case int, int64, uint64:
		got = "integer"
	case float64:
		if got = "number"; v == float64(int64(v)) {
			got = "integer"
		}
	case bool:
		got = "boolean"
	case []any:
		got = "array"
	case map[string]any:
		got = "object"
	}
	return unless(got == argument || got == "integer" && argument == "number", fmt.Sprintf("type %s, not %v", got, argument))
}

func matches(schemas, value any) (n int) {
	for _, one := range schemas.([]any) {
		if validate(one.(map[string]any), value) == "" {
			n++
		}
	}
	return n
}

func eachItem(argument, value any, _ map[string]any) string {
	items, _ := value.([]any)
	for i, item := range items {
		if wrong := validate(argument.(map[string]any), item); wrong != "" {
			return strconv.Itoa(i) + ": " + wrong
		}
	}
	return ""
}

func differ(_, value any, _ map[string]any) string {
	items, _ := value.([]any)
	for i, item := range items {
		if slices.ContainsFunc(items[:i], func(other any) bool { return reflect.DeepEqual(item, other) }) {
			return "uniqueItems"
		}
	}
	return ""
}

func hasAll(argument, value any, _ map[string]any) string {
	fields, ok := value.(map[string]any)
	for _, name := range argument.([]any) {
		if _, given := fields[name.(string)]; ok && !given {
			return "required " + name.(string)
		}
	}
	return ""
}

func dependencies(argument, value any, _ map[string]any) string {
	fields, _ := value.(map[string]any)
	for name, others := range argument.(map[string]any) {
		if _, given := fields[name]; !given {
			continue
		}
		if wrong := hasAll(others, value, nil); wrong != "" {
			return wrong
		}
	}
	return ""
}

func eachProperty(argument, value any, schema map[string]any) string {
	fields, _ := value.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	others, _ := argument.(map[string]any)
	for name, field := range fields {
		property, ok := properties[name].(map[string]any)
		if !ok {
			if property = others; others == nil {
				return "additionalProperties " + name
			}
		}
		if wrong := validate(property, field); wrong != "" {
			return name + ": " + wrong
		}
	}
	return ""
}

func eachName(argument, value any, _ map[string]any) string {
	fields, _ := value.(map[string]any)
	for name := range fields {
		if wrong := validate(argument.(map[string]any), name); wrong != "" {
			return "propertyNames: " + wrong
		}
	}
	return ""
}
