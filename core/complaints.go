package core

import (
	"log/slog"
	"sync"
	"time"
)

// complaints are what an operator should know, each at most once a minute for a rule, with how often it happened since it was
// said last.
type complaints struct {
	logger *slog.Logger
	store  seldom
	cost   seldom
	rule   seldom
	ident  seldom
	plan   seldom
	back   seldom
	renew  seldom
}

func (c *complaints) storeFailed(rule string, policy OnStoreError, err error) {
	c.store.say(rule, func(times int) {
		c.logger.Warn("accesslimit: the store does not answer", slog.Any("error", err),
			slog.String("rule", rule), slog.String("policy", policy.String()), slog.Int("calls", times))
	})
}

func (c *complaints) negativeCost(rule string, cost int) {
	c.cost.say(rule, func(times int) {
		c.logger.Warn("accesslimit: a rule's Cost is negative, counted as 1",
			slog.String("rule", rule), slog.Int("cost", cost), slog.Int("calls", times))
	})
}

func (c *complaints) identifyFailed(rule string, err error) {
	c.ident.say(rule, func(times int) {
		c.logger.Warn("accesslimit: could not find out whom to count", slog.Any("error", err),
			slog.String("rule", rule), slog.Int("calls", times))
	})
}

func (c *complaints) badRule(rule string, err error) {
	c.rule.say(rule, func(times int) {
		c.logger.Error("accesslimit: a rule given in a handler is wrong, its calls get 500",
			slog.Any("error", err), slog.Int("calls", times))
	})
}

func (c *complaints) badPlan(rule string, err error) {
	c.plan.say(rule, func(times int) {
		c.logger.Warn("accesslimit: a rule's LimitFor gave no limit, the rule's own holds", slog.Any("error", err),
			slog.String("rule", rule), slog.Int("calls", times))
	})
}

func (c *complaints) notGivenBack(err error) {
	c.back.say("", func(times int) {
		c.logger.Warn("accesslimit: what does not count could not be given back", slog.Any("error", err), slog.Int("calls", times))
	})
}

func (c *complaints) notRenewed(err error) {
	c.renew.say("", func(times int) {
		c.logger.Warn("accesslimit: the slot of a call in flight could not be renewed", slog.Any("error", err), slog.Int("calls", times))
	})
}

func (c *complaints) sharedRoute(name string) {
	c.logger.Warn("accesslimit: two unnamed rules count the same route in one counter, so that its calls are charged twice: "+
		"give the rule of the whole router a Name or Paths", slog.String("route", name))
}

// complainEvery is how often the same complaint is made.
const complainEvery = time.Minute

// maxSubjects bounds of how many rules the same complaint is told apart.
const maxSubjects = 100

// seldom lets one of many through, for each rule.
type seldom struct {
	mu    sync.Mutex
	rules map[string]*said
}

// said is when a complaint was made last, and how often there was reason for it since.
type said struct {
	last  time.Time
	times int
}

func (s *seldom) say(rule string, do func(times int)) {
	if times := s.due(rule); times > 0 {
		do(times)
	}
}

// due is how often there was reason to complain, if it is time to; otherwise 0.
func (s *seldom) due(rule string) (times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.rules[rule]
	if of == nil && len(s.rules) >= maxSubjects {
		rule = ""
		of = s.rules[rule]
	}
	if of == nil {
		if s.rules == nil {
			s.rules = make(map[string]*said)
		}
		of = new(said)
		s.rules[rule] = of
	}
	of.times++
	if !of.last.IsZero() && time.Since(of.last) < complainEvery {
		return 0
	}
	times, of.times, of.last = of.times, 0, time.Now()
	return times
}
