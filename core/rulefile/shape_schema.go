package rulefile

import (
	"encoding/json"

	"github.com/accesslimit/accesslimit/core/internal/rulefield"
)

//go:generate go test -run=^TestSchemaIsUpToDate$ -update .

// schema is a JSON Schema of draft 7, the newest draft that all editors support.
type schema struct {
	Version     string `json:"$schema,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"`

	Const     any    `json:"const,omitempty"`
	Minimum   *int64 `json:"minimum,omitempty"`
	Maximum   *int64 `json:"maximum,omitempty"`
	MinLength int    `json:"minLength,omitempty"`
	MaxLength int    `json:"maxLength,omitempty"`
	Pattern   string `json:"pattern,omitempty"`

	ExclusiveMinimum *int64 `json:"exclusiveMinimum,omitempty"`

	Items       *schema `json:"items,omitempty"`
	MinItems    int     `json:"minItems,omitempty"`
	MaxItems    int64   `json:"maxItems,omitempty"`
	UniqueItems bool    `json:"uniqueItems,omitempty"`

	Properties           map[string]*schema  `json:"properties,omitempty"`
	Required             []string            `json:"required,omitempty"`
	AdditionalProperties any                 `json:"additionalProperties,omitempty"` // false or *schema
	PropertyNames        *schema             `json:"propertyNames,omitempty"`
	MinProperties        int                 `json:"minProperties,omitempty"`
	MaxProperties        int64               `json:"maxProperties,omitempty"`
	Dependencies         map[string][]string `json:"dependencies,omitempty"`

	AnyOf []*schema `json:"anyOf,omitempty"`
	Not   *schema   `json:"not,omitempty"`
}

// schemaText returns the JSON Schema of a file, as schema.json has it.
func schemaText() ([]byte, error) {
	s := document.schema()
	s.Version, s.Title = "http://json-schema.org/draft-07/schema#", "Rules of accesslimit"
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

func (s *shape) schema() *schema {
	switch s.kind {
	case text:
		out := &schema{Type: "string", MinLength: 1, MaxLength: maxText}
		if s.pattern != nil {
			out.Pattern = s.pattern.String()
		}
		return out
	case number:
		if s.least == s.most {
			return &schema{Type: "integer", Const: s.least}
		}
		return &schema{Type: "integer", Minimum: &s.least, Maximum: &s.most}
	case fraction:
		return &schema{Type: "number", ExclusiveMinimum: new(int64), Maximum: &s.most}
	case truth:
		return &schema{Type: "boolean"}
	case listing:
		return &schema{
			Type: "array", Items: s.item.schema(), MinItems: smallest, MaxItems: s.most,
			UniqueItems: s.item.kind == text,
		}
	case mapping:
		return s.mappingSchema()
	default:
		out := &schema{}
		for _, one := range s.choices {
			out.AnyOf = append(out.AnyOf, one.schema())
		}
		return out
	}
}

func (s *shape) mappingSchema() *schema {
	out := &schema{Type: "object", Required: s.required, AdditionalProperties: false, MinProperties: smallest}
	if s.values != nil {
		out.AdditionalProperties, out.MaxProperties = s.values.schema(), s.most
		out.PropertyNames = &schema{MinLength: 1}
		return out
	}
	out.Properties = make(map[string]*schema)
	for _, f := range s.fields {
		value := f.schema()
		value.Description = f.doc
		out.Properties[f.name] = value
	}
	if s.isRule {
		out.limitRule()
	}
	return out
}

// limitRule adds that a rule must have a limit, and which fields need or exclude each other. It
// leaves out relations that depend on values.
func (s *schema) limitRule() {
	s.AnyOf = []*schema{{Required: []string{"limit"}}, {Required: []string{"seconds"}}}
	s.Dependencies, s.Not = make(map[string][]string), new(schema)
	for i := range rulefield.Table {
		f := &rulefield.Table[i]
		for _, r := range f.Needs {
			if r.Always() {
				s.Dependencies[f.File()] = append(s.Dependencies[f.File()], rulefield.Snake(r.Field))
			}
		}
		for _, r := range f.Excludes {
			if r.Always() {
				s.Not.AnyOf = append(s.Not.AnyOf, &schema{Required: []string{f.File(), rulefield.Snake(r.Field)}})
			}
		}
	}
}
