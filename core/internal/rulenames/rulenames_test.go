package rulenames

import (
	"fmt"
	"testing"
)

// text is a limit.
type text string

func (t text) String() string { return string(t) }

// A set that is replaced again and again keeps the names of its present version only, and those of
// others stay.
func TestReplacedNamesAreForgotten(t *testing.T) {
	names := New(func(a, b text) bool { return a == b })
	var set Owner
	nowhere := func(string) string { return "" }
	named := func(name string) []Claim[text] { return []Claim[text]{{Name: name, Limits: []text{"5/s"}}} }
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
