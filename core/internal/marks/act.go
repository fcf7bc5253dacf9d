package marks

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// The scripts are in this package because they do not depend on algorithms.
var (
	//go:embed act.lua
	actText   string
	actScript = algorithm.NewScript(actText)
)

// act is a mark to be written.
type act struct {
	*Mark
	span int64 // how long it lasts from now, in microseconds, or 0: until its Until
}

// done is what became of an act.
type done struct {
	mark   *Mark // as it is now, or nil if a newer one is there
	before *Mark // what was there, or nil
	err    error // ErrFull or ErrEnded
}

// Act does an act of an operator now: it writes a mark, or a removal. The mark lasts for span
// microseconds from now or, if span is 0, until its Until. Act returns the mark that was there, or nil.
//
// The errors are ErrFull, ErrEnded, that of the context, and *failure.Error. After a *failure.Error,
// Redis may have the mark or not. It holds in this process for a minute.
func (s *Set) Act(ctx context.Context, m Mark, span int64) (before *Mark, err error) {
	m.Rule, m.Subject, m.Author, m.Note = strings.Clone(m.Rule), nameByOperator(m.Subject), strings.Clone(m.Author), strings.Clone(m.Note)
	if m.isRemoval() {
		m.Until, span = 0, keepRemoved.Microseconds()
	}
	if err := s.compile(&m); err != nil {
		return nil, err
	}
	results, err := s.write(ctx, s.MostBans, []act{{&m, span}})
	if err != nil {
		if m.Until > 0 {
			span = m.Until - s.Redis.Time()
		}
		s.putUnconfirmed(&m, span)
		return nil, err
	}
	return results[0].before.holding(s.Now()), results[0].err
}

// limits are the Limits of marks, which many of them may share.
type limits struct {
	text string
	made any // by Options.Compile
}

// maxLimits is how many limits are kept to be shared.
const maxLimits = 1_000

// compile makes what the readers of a mark need.
func (s *Set) compile(m *Mark) error {
	if m.Kind != Limited || s.Compile == nil {
		return nil
	}
	known, ok := s.limits.Get(m.Limits)
	if !ok {
		made, err := s.Compile(m.Limits)
		if err != nil {
			return err
		}
		text := strings.Clone(m.Limits)
		known, _ = s.limits.Add(text, &limits{text, made}, maxLimits)
	}
	m.limits, m.Limits = known, known.text
	return nil
}

// putUnconfirmed puts an unconfirmed mark into the table, a ban by a rule only if there is room. It lasts
// for span microseconds, or without an end if span is 0, but at most a minute here.
func (s *Set) putUnconfirmed(m *Mark, span int64) {
	u, now, lasts := *m, s.Now(), unconfirmed.Microseconds()
	if span != 0 {
		lasts = min(lasts, span)
	}
	u.unconfirmed, u.ends = true, now+lasts
	s.mu.Lock()
	defer s.mu.Unlock()
	there := s.rule(m.Rule).subjects.add(m.Subject).of(m.isBan()).Load()
	u.before = there.confirmed()
	byOperator := there != nil && there.unconfirmed && !there.ByRule && there.ends > now
	if m.isByRule() && (byOperator || m.yieldsTo(u.before, now) || s.count >= s.Most) {
		return
	}
	s.putLocked(&u)
}

// write writes marks, in Redis or in the process, and puts them into the table. mostBans is how many
// bans by rules may be new in a second, or 0 for marks that are written back.
func (s *Set) write(ctx context.Context, mostBans int, acts []act) (results []done, err error) {
	if s.Redis == nil {
		return s.writeHere(acts), nil
	}
	args := []any{s.Most, mostBans, keptChanges}
	for _, a := range acts {
		class, number := "", a.number
		switch {
		case a.isByRule():
			class = "ban"
		case a.isRemoval():
			class = "removal"
		}
		if a.Since == 0 {
			number = s.known(a.Mark)
		}
		args = append(args, a.field(), number, a.Since, a.Until, a.span, class, a.text())
	}
	var reply []any
	err = s.redis.Operate(ctx, func(ctx context.Context) (err error) {
		reply, err = s.redis.Script(ctx, actScript, s.keys[:4], args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.readDone(reply, acts)
}

// known returns the number of the mark that an act takes the place of, or 0 if the table has none.
func (s *Set) known(m *Mark) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.rule(m.Rule).subjects.find([]byte(m.Subject)); e != nil {
		if there := e.of(m.isBan()).Load().confirmed(); there != nil {
			return there.number
		}
	}
	return 0
}

// readDone reads the reply of act.lua, and puts what is in Redis now into the table.
func (s *Set) readDone(reply []any, acts []act) (results []done, err error) {
	now, ok := int64(0), len(reply) == 1+2*len(acts)
	if ok {
		now, ok = reply[0].(int64)
	}
	if !ok {
		return nil, unexpected(reply)
	}
	for i := range acts {
		became, _ := reply[1+2*i].(string)
		before, _ := reply[2+2*i].(string)
		var d done
		switch became {
		case "full":
			d.err = ErrFull
		case "ended":
			d.err = ErrEnded
		case "":
		default:
			if d.mark, err = s.read(became, now); err != nil {
				return nil, unexpected(reply)
			}
			s.put(d.mark)
		}
		if before != "" {
			if d.before, err = s.read(before, now); err != nil {
				s.Log.MarkUnreadable(err)
			} else if became == "" {
				s.put(d.before)
			}
		}
		results = append(results, d)
	}
	return results, nil
}

func unexpected(reply any) error {
	return &failure.Error{Class: failure.Unexpected, Err: fmt.Errorf("a reply cannot be read: %.200v", reply)}
}

// read reads a stored mark. now is the time of Redis at which it was read.
func (s *Set) read(stored string, now int64) (*Mark, error) {
	m, err := parse(stored)
	if err != nil {
		return nil, err
	}
	if err := s.compile(m); err != nil {
		return nil, fmt.Errorf("the limits of %.200q cannot be read: %w", stored, err)
	}
	m.setEnd(s.Now(), now)
	return m, nil
}

// setEnd sets when the mark ends by the set's own clock, which shows here, if Redis's shows now. If the
// clock of Redis was set back since the act, the mark still lasts no longer than it was to last.
func (m *Mark) setEnd(here, now int64) {
	m.ends = never
	if m.Until != 0 {
		m.ends = here + min(m.Until-now, m.Until-m.Since)
	}
}
