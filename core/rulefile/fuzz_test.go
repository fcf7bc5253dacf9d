package rulefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLoad looks for a file that the loader panics on, or that is neither a set nor a list of
// errors with places.
func FuzzLoad(f *testing.F) {
	for _, dir := range []string{"good", "bad"} {
		for _, file := range corpus(f, dir) {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text, filepath.Ext(file) == ".json")
		}
	}
	f.Add([]byte("a: &a [x, *a]\n<<: *a\n"), false)
	f.Add([]byte("? [a, b]\n: {c: !!binary x}\n"), false)
	f.Add([]byte("\ufeff{\"version\":\t1}\r\n"), true)
	limiter := newLimiter(f)
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		name := "limits.yaml"
		if isJSON {
			name = "limits.json"
		}
		set, err := loadBytes(t, limiter, name, data)
		if (set == nil) == (err == nil) {
			t.Fatalf("%v and %v", set, err)
		}
		published := checkDocument(string(data))
		if published != nil {
			checkErrors(t, "document", published)
		}
		if err != nil {
			checkErrors(t, name, err)
			return
		}
		checkSet(t, set)
		if published != nil {
			t.Errorf("a good file cannot be published: %v", published)
		}
	})
}

func checkErrors(t *testing.T, name string, err error) {
	t.Helper()
	checkPlaces(t, name, err)
	for _, e := range errorsOf(t, err) {
		if text := e.Error(); len(text) > 4096 || !utf8.ValidString(text) || strings.Contains(text, "\n") {
			t.Errorf("the message is %q", text)
		}
	}
}

// checkSet fails unless every rule can be attached, on a Limiter of its own.
func checkSet(t *testing.T, set *Set) {
	t.Helper()
	if len(set.Names()) == 0 {
		t.Error("a set without rules")
	}
	fresh, err := newSet(newLimiter(t), registered, nil, set.present.Load())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range set.Names() {
		if _, err := fresh.Guard(name); err != nil {
			t.Errorf("the set has a rule that cannot be attached: %v", err)
		}
	}
}
