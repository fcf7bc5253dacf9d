package rulenames

import (
	"fmt"
	"testing"
)

// A set that is replaced again and again keeps the names of its present version only, and those of
// others stay.
func TestReplacedNamesAreForgotten(t *testing.T) {
	names := New(func(a, b string) bool { return a == b })
	var set Owner
	nowhere := func(string) string { return "" }
	named := func(name string) []Claim[string] { return []Claim[string]{{Name: name, Limits: []string{"5/s"}}} }
	if conflict := names.Claim(nil, named("api"), nowhere); conflict != nil {
		t.Fatal(conflict)
	}
	for i := range 1000 {
		if conflicts := names.Replace(&set, named(fmt.Sprint("version ", i)), nowhere); conflicts != nil {
			t.Fatal(conflicts)
		}
	}
	if len(names.claims) != 2 || names.claims["api"] == nil || names.claims["version 999"] == nil {
		t.Errorf("the claims are %v", names.claims)
	}
}
