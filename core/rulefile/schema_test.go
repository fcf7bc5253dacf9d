package rulefile

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestSchemaIsUpToDate(t *testing.T) {
	want := must(schemaText())
	if *update {
		if err := os.WriteFile("schema.json", want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := must(os.ReadFile("schema.json"))
	if !bytes.Equal(got, want) {
		t.Error("schema.json is not that of the shapes: run go generate")
	}
}

// schemaRefuses returns what schema.json says is wrong with a file, or "". A file that cannot be
// parsed is nothing that a schema could accept.
func schemaRefuses(t testing.TB, file string) string {
	t.Helper()
	data := must(os.ReadFile(file))
	parse := yaml.Unmarshal
	if filepath.Ext(file) == ".json" {
		parse = json.Unmarshal
	}
	var value any
	if err := parse(data, &value); err != nil {
		return err.Error()
	}
	return validate(readSchema(t), value)
}

func readSchema(t testing.TB) map[string]any {
	t.Helper()
	text := must(os.ReadFile("schema.json"))
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// Every value of a file is replaced by values of other forms. Whatever the schema refuses then, the
// loader refuses too. Both refuse the values that no field can have.
func TestLoaderAndSchemaAgree(t *testing.T) {
	schema, limiter := readSchema(t), newLimiter(t)
	others := []any{nil, 1.5, "", []any{}, map[string]any{}, true, -1, "x", []any{"x"}, map[string]any{"x": "y"}}
	never := []int{0, 1, 2, 3, 4} // of the others
	changed := 0
	for _, file := range []string{"complete.yaml", "key_ip.yaml", "functions.yaml", "schema.yaml"} {
		var value any
		if text, err := os.ReadFile(filepath.Join("testdata/good", file)); err != nil || yaml.Unmarshal(text, &value) != nil {
			t.Fatal(file, err)
		}
		for i, other := range others {
			change(value, other, func() {
				changed++
				text := must(json.Marshal(value))
				_, err := loadBytes(t, limiter, "limits.yaml", text)
				switch refused := validate(schema, value); {
				case refused != "" && err == nil:
					t.Errorf("the loader accepts, the schema does not (%s): %s", refused, text)
				case err == nil && slices.Contains(never, i):
					t.Errorf("the loader accepts %v: %s", other, text)
				case refused == "" && slices.Contains(never, i):
					t.Errorf("the schema accepts %v: %s", other, text)
				}
			})
		}
	}
	if changed < 500 {
		t.Errorf("%d changes only", changed)
	}
}

// change calls do once for each value in a document, while another is in its place.
func change(in, other any, do func()) {
	switch in := in.(type) {
	case map[string]any:
		for key, value := range in {
			in[key] = other
			do()
			in[key] = value
			change(value, other, do)
		}
	case []any:
		for i, value := range in {
			in[i] = other
			do()
			in[i] = value
			change(value, other, do)
		}
	}
}
