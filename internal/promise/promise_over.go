package promise

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/accesslimit/accesslimit/core"
)

// NeverOverTheLimit: no caller gets more permits in any span than the algorithm promises, however
// it times its calls. A fresh counter grants all permits.
func NeverOverTheLimit(t *testing.T, e Engine) {
	lab := e.newLab(t)
	eachAlgorithm(t, func(t *testing.T, f facts) {
		rapid.Check(t, func(rt *rapid.T) {
			limit := rapid.SampledFrom(f.limits()).Draw(rt, "limit")
			steps := traces(limit, false).Draw(rt, "trace")
			greedy := rapid.Bool().Draw(rt, "greedy")
			if err := lab.play(t, func(limiter *core.Limiter) error {
				return staysWithin(&player{limiter: limiter, name: "name", subject: "subject"}, f, steps, greedy)
			}); err != nil {
				rt.Fatal(err)
			}
		})
	})
	lab.eachLimit(t, "a fresh counter gives all", func(c counter, _ facts) {
		c.mustTake(atOnce(c.limit))
		c.mustRefuse(1)
	})
}

// admission is a number of permits that passed at one time.
type admission struct {
	at      time.Time
	permits int
}

// staysWithin plays a trace and checks every span of what was admitted. A greedy caller peeks first
// and takes exactly what is left, so that everything is used. A reset starts afresh.
func staysWithin(p *player, f facts, steps trace, greedy bool) error {
	var admitted []admission
	for i, s := range steps {
		if s.do == reset {
			admitted = nil
		} else if greedy {
			s.do = peek
		}
		d, err := p.play(s)
		if greedy && err == nil && s.do == peek && d.Remaining > 0 {
			s.do, s.n, s.wait = allow, min(max(1, s.n), d.Remaining), wait{}
			d, err = p.play(s)
		}
		if err != nil {
			return s.failed(i, err)
		}
		if s.do == allow && d.Allowed {
			admitted = append(admitted, admission{time.Now(), s.cost()})
		}
		if err := spansWithin(admitted, f, s.by); err != nil {
			return s.failed(i, err)
		}
	}
	return nil
}

// spansWithin checks the spans that end with the last admission.
func spansWithin(admitted []admission, f facts, limit core.Limit) error {
	w := limit.Window
	for _, span := range []time.Duration{w / 32, w / 2, w - time.Microsecond, w, w + w/32, 3 * w / 2, 2 * w, 5 * w} {
		sum := int64(0)
		for i := len(admitted) - 1; i >= 0 && admitted[len(admitted)-1].at.Sub(admitted[i].at) < span; i-- {
			sum += int64(admitted[i].permits)
		}
		if most := f.most(limit, span); sum > most {
			return fmt.Errorf("%d admitted within %v, want at most %d of %v", sum, span, most, limit)
		}
	}
	return nil
}
