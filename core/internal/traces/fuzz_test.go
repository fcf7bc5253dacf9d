package traces

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/terms"
	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// FuzzTraces varies the traces: their text, and, by a number, the times, costs and operations of their
// steps. This process and Redis must give the same answers.
func FuzzTraces(f *testing.F) {
	numbers := uint64(2)
	if os.Getenv("ACCESSLIMIT_LONG") != "" {
		numbers = 20
	}
	for _, name := range names(f) {
		text, _ := files.ReadFile(name)
		_, all, err := Parse(string(text))
		if err != nil {
			f.Fatal(err)
		}
		for _, trace := range all {
			for number := range numbers {
				f.Add(trace.String(), number)
			}
		}
	}
	redis := redisOf(f, scriptclock.TakeTime)
	f.Fuzz(func(t *testing.T, text string, number uint64) {
		_, all, err := Parse(text)
		if err != nil || len(all) != 1 || len(all[0].lines) > 100 {
			return
		}
		v := &variation{rng: rand.New(rand.NewPCG(number, 0))}
		process := Engine{beside: number%2 == 1, vary: v.vary}
		redis.beside = process.beside
		process.Play(t, all[0], func(s *step, answer []string) { s.answer = answer })
		redis.Play(t, all[0], func(s *step, answer []string) {
			got := without(answer, isKey)
			if s.do == "reset" { // this Redis keeps counters that equal fresh ones
				got[0] = s.answer[0]
			}
			if !slices.Equal(got, s.answer) {
				t.Fatalf("%s\n%s  %s\nRedis answers %q, this process %q", all[0], terms.Span(s.at), s.op, got, s.answer)
			}
		})
	})
}

// variation varies the steps of a trace.
type variation struct {
	rng  *rand.Rand
	file time.Duration // the time of the last step in the file
	now  time.Duration // and as it was played
}

// vary varies a step that is played next. It often comes when, by the last answer, something changes.
func (v *variation) vary(p *player, s *step) {
	window := int64(p.limit.Window)
	if window == 0 { // of a calendar
		window = int64(24 * time.Hour)
	}
	passes := s.at - v.file
	switch v.rng.IntN(12) {
	case 0, 1:
		passes = p.seen.RetryAfter
	case 2:
		passes = p.seen.RetryAfter - time.Microsecond
	case 3:
		passes = p.seen.ResetAfter
	case 4:
		passes = time.Duration(v.rng.Int64N(window / 16))
	case 5:
		passes = time.Duration(v.rng.Int64N(2 * window))
	case 6:
		passes = -time.Duration(v.rng.Int64N(window))
	}
	v.file, v.now = s.at, min(v.now+passes.Truncate(time.Microsecond), latest.Sub(p.start))
	s.at = max(v.now, earliest.Sub(p.start))
	if v.rng.IntN(4) == 0 {
		s.n = v.rng.IntN(min(p.limit.Max, 1000) + 1)
	}
	if s.note == "" && s.n > 0 && v.rng.IntN(5) == 0 {
		all := []string{"look", "take N", "take up to N", "charge N", "give back N of X", "turn N", "reset"}
		s.do = all[v.rng.IntN(len(all))]
	}
	switch names := slices.Sorted(maps.Keys(p.charges)); {
	case s.do == "turn N":
		s.as = "" // what is given back while others wait behind it comes back later, in the background
	case s.do == "give back N of X" && len(names) > 0:
		s.of = names[v.rng.IntN(len(names))]
	}
	s.op = strings.NewReplacer("N", strconv.Itoa(s.n), "X", cmp.Or(s.of, s.as)).Replace(s.do)
}
