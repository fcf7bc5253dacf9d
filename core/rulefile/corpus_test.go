package rulefile

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write schema.json and testdata/bad.golden anew")

// golden is the file of messages for testdata/bad. Each paragraph also notes if the
// schema refuses the file. The schema knows the form of values, but neither YAML's spelling nor
// the checks of core.
const golden = "testdata/bad.golden"

func corpus(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files in %s: %v", len(files), dir, err)
	}
	return files
}

func TestGoodFiles(t *testing.T) {
	for _, file := range corpus(t, "good") {
		set, err := load(t, file)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, name := range set.Names() {
			if _, err := set.Guard(name); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		if wrong := schemaRefuses(t, file); wrong != "" {
			t.Errorf("%s: the schema refuses it: %s", file, wrong)
		}
		if err := checkDocument(string(must(os.ReadFile(file)))); err != nil {
			t.Errorf("%s cannot be published: %v", file, err)
		}
	}
}

// publishable are errors that only a service finds, which knows its functions, and of files named
// *.json that are YAML.
var publishable = regexp.MustCompile(`registered in Functions\.|"[a-z]+": is not a key|is not JSON`)

func TestBadFiles(t *testing.T) {
	var all bytes.Buffer
	for _, file := range corpus(t, "bad") {
		set, err := load(t, file)
		if err == nil || set != nil {
			t.Errorf("%s: no error", file)
			continue
		}
		checkPlaces(t, file, err)
		content, unreadable := os.ReadFile(file)
		if unreadable == nil && checkDocument(string(content)) == nil && !publishable.MatchString(err.Error()) {
			t.Errorf("%s can be published: %v", file, err)
		}
		says := "accepts"
		if schemaRefuses(t, file) != "" {
			says = "refuses"
		}
		text := strings.ReplaceAll(err.Error(), filepath.Dir(file)+string(filepath.Separator), "")
		fmt.Fprintf(&all, "# %s (the schema %s it)\n%s\n\n", filepath.Base(file), says, text)
	}
	if *update {
		if err := os.WriteFile(golden, all.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := must(os.ReadFile(golden))
	compare(t, all.String(), string(want))
}

// compare reports the paragraphs that differ.
func compare(t *testing.T, got, want string) {
	t.Helper()
	known := strings.Split(want, "\n\n")
	for _, paragraph := range strings.Split(got, "\n\n") {
		if !slices.Contains(known, paragraph) {
			t.Errorf("not in %s; run go test -update if it is right:\n%s", golden, paragraph)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s has other messages too; run go test -update", golden)
	}
}

// checkPlaces fails unless the errors are sorted and each names the file and a line.
func checkPlaces(t *testing.T, file string, err error) {
	t.Helper()
	before := Place{}
	for _, e := range errorsOf(t, err) {
		at := e.Place
		if at.File != file || at.Line < 1 || at.Column < 1 {
			t.Errorf("%s: the place is %+v", file, at)
		}
		if at.Line < before.Line || at.Line == before.Line && at.Column < before.Column {
			t.Errorf("%s: %v comes after %v", file, at, before)
		}
		before = at
	}
}

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
