package traces

import (
	"flag"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/terms"
	"github.com/accesslimit/accesslimit/internal/leakcheck"
	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

var update = flag.Bool("update", false, "write the answers into the files")

// Each algorithm does what its file says, in this process and in Redis, whether a call has one limit or
// several.
func TestTraces(t *testing.T) {
	redis := redisOf(t, scriptclock.TakeTimeAndExpire)
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			text, _ := files.ReadFile(name)
			head, all, err := Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				write(t, redis, name, head, all)
				return
			}
			for _, trace := range all {
				for _, e := range []Engine{redis, {}} {
					for _, e.beside = range []bool{false, true} {
						e.forgets = true
						e.Play(t, trace, func(s *step, answer []string) { s.compare(t, e, trace, answer) })
					}
				}
			}
		})
	}
}

func names(t testing.TB) []string {
	t.Helper()
	names, err := fs.Glob(files, "*.txt")
	if err != nil || len(names) < 7 {
		t.Fatal(names, err)
	}
	return names
}

func redisOf(t testing.TB, change func(string) (string, error)) Engine {
	return Engine{server: redistest.Start(t).Client(t), change: change}
}

// write writes the answers of Redis into a file. Of two times at which a key may expire, it takes the
// earlier one.
func write(t *testing.T, redis Engine, name, head string, all []*Trace) {
	for _, trace := range all {
		redis.Play(t, trace, func(s *step, answer []string) { s.answer = answer })
		redis.beside, redis.forgets = true, true
		redis.Play(t, trace, func(s *step, answer []string) { s.answer = append(without(s.answer, isKey), only(answer, isKey)...) })
		redis.beside = false
		head += strings.TrimRight(trace.String(), "\n") + "\n\n"
	}
	if err := os.WriteFile(name, []byte(strings.TrimRight(head, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func isKey(cell string) bool  { return strings.Contains(cell, "key") }
func isLost(cell string) bool { return strings.HasPrefix(cell, "lost ") }

func without(cells []string, is func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(cells), is)
}

func only(cells []string, is func(string) bool) []string {
	return without(cells, func(cell string) bool { return !is(cell) })
}

// compare compares an answer with that in the file. In this process there are no keys. A further limit
// may lose refunds, too.
func (s *step) compare(t *testing.T, e Engine, of *Trace, got []string) {
	t.Helper()
	want := s.answer
	if e.server == nil {
		want = without(want, isKey)
	}
	if e.beside {
		want, got = without(want, isLost), without(got, isLost)
	}
	if !slices.EqualFunc(got, want, s.same) {
		where := map[bool]string{true: "in this process", false: "in Redis"}[e.server == nil]
		t.Errorf("%s\n%s  %s\ngives %q %s (with a further limit: %v)\nwant  %q", of.Says, terms.Span(s.at), s.op, got, where, e.beside, want)
	}
}

// same reports whether a cell is as wanted. The key of a sliding window may live for a part longer.
func (s *step) same(got, want string) bool {
	if got == want {
		return true
	}
	return s.late > 0 && isKey(want) && until(got) > until(want) && until(got) <= until(want)+s.late
}
