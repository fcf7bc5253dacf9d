package rulefile

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

const small = "version: 1\nrules:\n  - {name: NAME, limit: 100/s}\n"

func oneRule(name string) string { return strings.Replace(small, "NAME", name, 1) }

// folder writes files into a new folder and returns it.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// wantError fails unless Load refuses the paths with an error that has all the parts, in order.
func wantError(t *testing.T, paths []string, parts ...string) {
	t.Helper()
	set, err := load(t, paths...)
	if err == nil || set != nil {
		t.Fatalf("%v: no error", paths)
	}
	rest := err.Error()
	for _, part := range parts {
		i := strings.Index(rest, part)
		if i < 0 {
			t.Fatalf("%v: want %q in order, got: %.1000v", paths, parts, err)
		}
		rest = rest[i+len(part):]
	}
}

func TestLoadFolder(t *testing.T) {
	dir := folder(t, map[string]string{
		"b.yml": oneRule("b"), "a.yaml": oneRule("a"), "c.JSON": `{"version": 1, "rules": [{"name": "c", "limit": "1/s"}]}`,
		"README.md": "no rules", "a.yaml~": "x: [", ".hidden.yaml": "x: [",
	})
	other := write(t, "more.conf", oneRule("d"))
	set := must(load(t, dir, other))
	if names := set.Names(); !slices.Equal(names, []string{"a", "b", "c", "d"}) {
		t.Errorf("the names are %v", names)
	}
	if at := set.present.Load().rules["b"].place; at != (Place{filepath.Join(dir, "b.yml"), 3, 5}) {
		t.Errorf("b is at %v", at)
	}
}

func TestOneNameInTwoFiles(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": oneRule("api"), "b.yaml": oneRule("api")})
	a, b := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	wantError(t, []string{dir}, b+`:3:12: rule "api": is also at `+a+":3:5")
	wantError(t, []string{a, a}, `rule "api": is also at `+a)
}

// Errors of all files come in the order of the files, not of their names.
func TestErrorsOfSeveralFiles(t *testing.T) {
	z, a := write(t, "z.yaml", "version: 2\nrules: [x]\n"), write(t, "a.yaml", "version: 3\nrules: [x]\n")
	gone := filepath.Join(t.TempDir(), "gone.yaml")
	wantError(t, []string{z, a}, "z.yaml:1:10", "z.yaml:2:9", "a.yaml:1:10", "a.yaml:2:9")
	wantError(t, []string{z, gone, a}, gone+": cannot be read: no such file")
	wantError(t, nil, "no file and no folder is named")
	_, err := load(t, gone)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not fs.ErrNotExist: %v", err)
	}
}

// A file that turns into a FIFO between two steps of reading it does not make the reader wait.
func TestAFileThatBecomesAFIFO(t *testing.T) {
	dir := folder(t, map[string]string{"file": oneRule("api")})
	path, next := filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "next")
	fifo := filepath.Join(dir, "fifo")
	if err := errors.Join(makeFIFO(fifo), os.Symlink("file", path)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for read, refused := 0, 0; read < 10000 || refused == 0 || refused == read; read++ { // both were met
			if _, err := readFile(path); err != nil {
				refused++
			}
		}
	}()
	late := time.After(time.Minute)
	for target := "fifo"; ; {
		select {
		case <-done:
			return
		case <-late:
			writer, _ := os.OpenFile(fifo, os.O_RDWR, 0) // which is what readFile waits for
			defer writer.Close()
			t.Fatal("readFile waits for somebody to write into a FIFO, or never met one")
		default:
		}
		if err := errors.Join(os.Symlink(target, next), os.Rename(next, path)); err != nil {
			t.Fatal(err)
		}
		target = map[string]string{"fifo": "file", "file": "fifo"}[target]
	}
}

func TestTooMuch(t *testing.T) {
	huge := write(t, "huge.yaml", "")
	if err := os.Truncate(huge, 100<<20); err != nil {
		t.Fatal(err)
	}
	full := oneRule("api") + "# " + strings.Repeat("x", maxFileBytes-100)
	dir := folder(t, map[string]string{"1.yaml": full, "2.yaml": full, "3.yaml": full, "4.yaml": full, "5.yaml": full})
	wantError(t, []string{dir}, "5.yaml: with this file there are more than 4194304 bytes")
	wantError(t, slices.Repeat([]string{huge}, maxFiles+1), "there are 101 files, want at most 100")

	one := strings.TrimPrefix(small, "version: 1\nrules:\n")
	rules := func(n int, prefix string) string {
		text := "version: 1\nrules:\n"
		for i := range n {
			text += strings.Replace(one, "NAME", fmt.Sprint(prefix, i), 1)
		}
		return text
	}
	wantError(t, []string{write(t, "many.yaml", rules(maxRules+1, "a"))}, "many.yaml:3:3: rules: has 1001 entries, want at most 1000")
	a, b := write(t, "a.yaml", rules(600, "a")), write(t, "b.yaml", rules(401, "b"))
	wantError(t, []string{a, b}, `b.yaml:403:5: rule "b400": there are more than 1000 rules`)
}

// A file of one megabyte can have very many errors. Only the first of them are reported.
func TestErrorsAreBounded(t *testing.T) {
	path := write(t, "limits.yaml", "version: 1\nrules: ["+strings.Repeat("x,", 900)+"]")
	_, err := load(t, path)
	if n := len(errorsOf(t, err)); n != maxErrors || !strings.HasSuffix(err.Error(), "and 800 more errors") {
		t.Errorf("%d errors: %v", n, err)
	}
}

// aliasBomb returns a small text that stands for a huge one.
func aliasBomb() string {
	text := "a: &a [x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		text += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c, ", c-1), 8), c-1)
	}
	return text
}

func TestHostileText(t *testing.T) {
	deep := func(n int) string { return "version: 1\nrules: " + strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, test := range []struct{ text, want string }{
		{" \n\n", "limits.yaml:1:1: is empty"},
		{"\xfe\xff\x00v\x00e", "limits.yaml:1:1: is not UTF-8 (it looks like UTF-16"},
		{"version: 1\nrules: \x00", "limits.yaml:1:1: is not UTF-8 (it looks like UTF-16, or binary"},
		{"version: 1\nrules: # caf\xe9\n", "limits.yaml:2:13: is not UTF-8 here"},
		{"version: 1\nrules: \"\a\"\n", "limits.yaml:1:1: control characters are not allowed"},
		{"a: &a [*a]", "limits.yaml:1:4: anchors"},
		{"a: 1\nb: &b 1\n", "limits.yaml:2:4: anchors"},
		{deep(100), "limits.yaml:2:24: is nested deeper than 16 levels"},
		{deep(9_000), "limits.yaml:2:24: is nested deeper than 16 levels"},
		{deep(500_000), "limits.yaml:2:1: exceeded max depth of 10000"},
		{strings.Repeat("- ", 500_000), "exceeded max depth of 10000"},
		{strings.Repeat("? ", 500_000), "exceeded max depth of 10000"},
		{oneRule(strings.Repeat("n", 5000)), "has 5000 bytes, want at most 4096"},
		{"version: 1\nrules:\n  - name: api\n" + strings.Repeat("    name: api\n", 100), "limits.yaml:3:5: rule \"api\": has 101 entries, want at most 100"},
		{oneRule("api") + "\n...\n%YAML 9.9\n---\nx", "limits.yaml:"},
	} {
		wantError(t, []string{write(t, "limits.yaml", test.text)}, test.want)
	}
}

func TestFunctionsThatAreNone(t *testing.T) {
	limiter, path := newLimiter(t), write(t, "limits.yaml", oneRule("api"))
	for want, functions := range map[string]Functions{
		`Functions.Keys["ip"] has the name`:       {Keys: map[string]core.KeyFunc{"ip": core.ByHost}},
		`Functions.Keys["header:X"] has the name`: {Keys: map[string]core.KeyFunc{"header:X": core.ByHost}},
		`Functions.Plans["free"] is nil`:          {Plans: map[string]func(core.Request) (string, error){"free": nil}},
		`Functions.Skips has a function without`:  {Skips: map[string]func(core.Request) bool{"": func(core.Request) bool { return true }}},
	} {
		if _, err := Load(limiter, functions, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	if _, err := Load(nil, Functions{}, path); err == nil || !strings.Contains(err.Error(), "never made") {
		t.Errorf("nil Limiter: %v", err)
	}
}

// A rule that warns needs a Limiter that reports, and a rule for users one that knows them.
func TestRulesThatNeedAnOption(t *testing.T) {
	limiter := limitertest.New(t, core.Options{Logger: slog.New(slog.DiscardHandler)})
	for field, want := range map[string]string{
		"warn: [0.8]":      `:5:11: rule "api": warn: needs Options.OnThreshold, which receives the reports`,
		"need_login: true": `:5:17: rule "api": need_login = true: needs Options.Identify, to know who is logged in`,
	} {
		_, err := Load(limiter, Functions{}, write(t, "limits.yaml", limitText("1/s")+"    "+field+"\n"))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", field, err, want)
		}
	}
}
