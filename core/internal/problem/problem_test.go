package problem_test

import (
	"encoding/json"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/problem"
)

func TestTextsAreEscapedLikeEncodingJSON(t *testing.T) {
	for c := range 256 {
		text := "a" + string([]byte{byte(c)}) + "z"
		want, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := problem.AppendJSON([]byte("x"), text); string(got) != "x"+string(want) {
			t.Errorf("%q: got %s, want x%s", text, got, want)
		}
	}
}
