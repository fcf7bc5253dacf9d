package core

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// complaints are what an operator should know, each at most once a minute for a rule or a server, with how often it happened since
// it was said last.
type complaints struct {
	logger *slog.Logger
	about  [complaintKinds]seldom

	untrusted, addressless, routeless, twice once // about how the service is put together: each is made once
}

// The kinds of complaints.
const (
	aboutStore = iota
	aboutCost
	aboutIdentify
	aboutPlan
	aboutGivingBack
	aboutRenewing
	aboutBreakers
	aboutConnections
	aboutVersion
	aboutEviction
	complaintKinds
)

// close says what was not yet said.
func (c *complaints) close() {
	for i := range c.about {
		c.about[i].close()
	}
}

// A complaint may be made a minute after its reason, so it keeps copies: a rule's name, or what an error says, may be a framework's text, for
// the call only.

func (c *complaints) negativeCost(rule string, cost int) {
	rule = strings.Clone(rule)
	c.about[aboutCost].say(rule, func(times int) {
		c.logger.Warn("accesslimit: a rule's Cost is negative, counted as 1",
			slog.String("rule", rule), slog.Int("cost", cost), slog.Int("calls", times))
	})
}

func (c *complaints) identifyFailed(rule string, err error) {
	rule, why := strings.Clone(rule), kept(err)
	c.about[aboutIdentify].say(rule, func(times int) {
		c.logger.Warn("accesslimit: could not find out whom to count", slog.String("error", why),
			slog.String("rule", rule), slog.Int("calls", times))
	})
}

func (c *complaints) badPlan(rule string, err error) {
	rule, why := strings.Clone(rule), kept(err)
	c.about[aboutPlan].say(rule, func(times int) {
		c.logger.Warn("accesslimit: a caller's plan could not be found, the rule's own limit holds", slog.String("error", why),
			slog.String("rule", rule), slog.Int("calls", times))
	})
}

func (c *complaints) notGivenBack(err error) {
	c.afterwards(aboutGivingBack, "accesslimit: what does not count could not be given back", err)
}

func (c *complaints) notRenewed(err error) {
	c.afterwards(aboutRenewing, "accesslimit: the slot of a call in flight could not be renewed", err)
}

// afterwards logs a failure of the store after it had answered the call itself.
func (c *complaints) afterwards(about int, message string, err error) {
	class, why := classOf(err), kept(err)
	c.about[about].say(string(class), func(times int) {
		level, attrs := advice(class, why)
		c.logger.Log(context.Background(), level, message, append(attrs, slog.Int("calls", times))...)
	})
}

// kept is what an error says, as a copy.
func kept(err error) string { return strings.Clone(err.Error()) }

// complainEvery is how often the same complaint is made.
const complainEvery = time.Minute

// maxSubjects bounds of how many rules, servers or the like the same complaint is told apart.
const maxSubjects = 100

// seldom lets one of many through, for each thing that is complained of: the first at once, and once a minute all since then together.
type seldom struct {
	mu     sync.Mutex
	of     map[string]*said
	closed bool
}

// said is how often there was reason for a complaint since it was made last, and how it is made.
type said struct {
	times int
	do    func(times int)
	timer *time.Timer // set for a minute after it was made
	made  bool        // once at least
}

func (s *seldom) say(about string, do func(times int)) {
	if times := s.due(about, do); times > 0 {
		do(times)
	}
}

// due is how often there was reason to complain, if it is time to; otherwise 0.
func (s *seldom) due(about string, do func(times int)) (times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of[about]
	if of == nil && len(s.of) >= maxSubjects {
		about = ""
		of = s.of[about]
	}
	if of == nil {
		if s.of == nil {
			s.of = make(map[string]*said)
		}
		of = new(said)
		s.of[strings.Clone(about)] = of // it may be a framework's, for the call only
	}
	of.times, of.do = of.times+1, do
	if of.timer != nil || s.closed && of.made { // no timer runs any more: once is enough
		return 0
	}
	return s.take(of)
}

// take is how often there was reason, and begins another minute, unless there was none.
func (s *seldom) take(of *said) (times int) {
	times, of.times, of.timer = of.times, 0, nil
	of.made = of.made || times > 0
	if times > 0 && !s.closed {
		of.timer = time.AfterFunc(complainEvery, func() { s.minuteOver(of) })
	}
	return times
}

func (s *seldom) minuteOver(of *said) {
	s.mu.Lock()
	times, do := s.take(of), of.do
	s.mu.Unlock()
	if times > 0 {
		do(times)
	}
}

// close says at once what waits for its minute.
func (s *seldom) close() {
	s.mu.Lock()
	s.closed = true
	var waiting []*said
	for _, of := range s.of {
		if of.timer != nil && of.timer.Stop() {
			waiting = append(waiting, of)
		}
	}
	s.mu.Unlock()
	for _, of := range waiting {
		s.minuteOver(of)
	}
}
