package promise

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// AnswersAreExact: every field of every decision is what a plain model of the algorithm gives, to
// the microsecond, whatever happened to the counter: costs, peeks, partial and full refunds,
// resets, gaps long enough for its key to expire, and limits of another size.
func AnswersAreExact(t *testing.T, e Engine) {
	lab := e.newLab(t)
	eachAlgorithm(t, func(t *testing.T, f facts) {
		rapid.Check(t, func(rt *rapid.T) {
			limit := rapid.SampledFrom(f.limits()).Draw(rt, "limit")
			steps := traces(limit, true).Draw(rt, "trace")
			err := lab.play(t, func(limiter *core.Limiter) error {
				return followsModel(&player{limiter: limiter, name: "name", subject: "subject"}, f, steps, e.source())
			})
			if err != nil {
				rt.Fatal(err)
			}
		})
	})
}

// eachAlgorithm runs a test for each algorithm.
func eachAlgorithm(t *testing.T, test func(t *testing.T, f facts)) {
	for _, f := range algorithms {
		t.Run(f.String(), func(t *testing.T) { test(t, f) })
	}
}

// followsModel compares a counter with its model on a trace.
func followsModel(p *player, f facts, steps trace, source core.Source) error {
	counter := f.model()
	for i, s := range steps {
		if s.do == refund {
			of, n, err := p.giveBack(s)
			if err != nil {
				return s.failed(i, err)
			}
			if n > 0 {
				counter.refund(time.Now().UnixMicro(), of.Limit, of.number, n)
			}
			continue
		}
		got, err := p.play(s)
		if err != nil {
			return s.failed(i, err)
		}
		if s.do == reset {
			counter = f.model()
		}
		if s.do == reset {
			continue
		}
		want := counter.ask(time.Now().UnixMicro(), s.by, s.cost(), s.do == allow).decision(p.name, p.subject, s.by, source)
		if source == core.FromRedis && got.Source == core.FromDenyCache && s.do == allow && !want.Allowed {
			// A refusal is repeated with exactly what Redis would answer now.
			want.Source = core.FromDenyCache
		}
		if err := sameDecision(got, want); err != nil {
			return s.failed(i, err)
		}
	}
	return nil
}
