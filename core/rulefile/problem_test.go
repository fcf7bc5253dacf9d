package rulefile

import (
	"os"
	"runtime"
	"testing"
)

// A file that cannot be read is another problem than one that is wrong: nobody knows what it would
// say. If another file is wrong, that is the problem.
func TestUnreadFiles(t *testing.T) {
	good, other := write(t, "a.yaml", rulesText("api", "limit: 1/h")), write(t, "b.yaml", rulesText("other", "limit: 1/h"))
	set, err := load(t, good, other)
	if err != nil {
		t.Fatal(err)
	}
	guard := set.MustGuard("api")
	want := func(problem string) {
		t.Helper()
		err := set.Reload()
		if got := set.limiter.Stats().RuleSets[0]; got.Problem != problem || (err == nil) != (problem == "") {
			t.Errorf("the Stats have %+v, want %q; Reload: %v", got, problem, err)
		}
	}
	replace := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want("")
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	want("unread")
	replace(good, rulesText("api", "limit: 0/h"))
	want("wrong")
	replace(good, rulesText("api", "limit: 2/h"))
	want("unread")
	replace(other, rulesText("other", "limit: 1/h"))
	want("")
	runtime.KeepAlive(guard)
}
