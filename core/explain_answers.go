package core

import (
	"context"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/knownbans"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// knownAnswers is the engine's Store while it decides for an Explanation. It answers from what was read
// before, for all rules together, and charges nothing. Until then, everything fits, and what the
// engine wants to know becomes a question.
type knownAnswers struct {
	engine.Store                             // of which an Explanation needs Decide only
	memory       *memstore.Store             // nil with Redis
	redis        *redisstore.Store           // nil without
	known        *knownbans.Table            // nil without Redis
	values       map[string]redisstore.Value // of overrides and bans, by key
	asked        questions                   // nil before the overrides are known
	now          int64                       // microseconds since the epoch
}

// read reads the overrides and bans with these keys.
func (s *knownAnswers) read(ctx context.Context, keys []string) {
	s.values = make(map[string]redisstore.Value)
	unique := keys[:0]
	for _, key := range keys {
		if _, ok := s.values[key]; !ok {
			unique, s.values[key] = append(unique, key), redisstore.Value{}
		}
	}
	if s.memory == nil {
		for i, value := range s.redis.GetAll(ctx, unique) {
			s.values[unique[i]] = value
		}
		return
	}
	for _, key := range unique {
		o, ok := s.memory.Override([]byte(key))
		s.values[key] = redisstore.Value{Text: overrides.Stored(&o.Override, ok), Ok: ok}
	}
}

// override returns what an operator set for a subject under a rule with the limit own, or nil. If the
// store does not answer, it may be a block that this process knows.
func (s *knownAnswers) override(subject, key string, own *algorithm.Limit) (*Override, error) {
	v := s.values[key]
	if v.Ok || v.Err != nil && failure.ClassOf(v.Err) == failure.Foreign {
		o := readOverride(subject, v.Text, own)
		return &o, nil
	}
	if v.Err == nil {
		return nil, nil
	}
	lasts := s.known.Lasts([]byte(key))
	if lasts <= 0 {
		return nil, v.Err
	}
	o := &Override{Subject: subject, Blocked: true}
	if lasts != algorithm.Forever {
		o.Until = time.UnixMicro(s.known.StoreTime() + lasts).UTC()
	}
	return o, nil
}

// found returns what a store finds if it looks for the override, which may be nil.
func (o *Override) found() (found algorithm.FoundOverride) {
	switch {
	case o == nil || o.Ignored != "":
		return found
	case o.Blocked:
		found.What = algorithm.OverrideBlocked
	case o.Unlimited:
		found.What = algorithm.OverrideUnlimited
	default:
		found = algorithm.FoundOverride{What: algorithm.OverrideLimit, Max: int64(o.Max), Burst: int64(o.Burst)}
	}
	if !o.Until.IsZero() {
		found.Ends = o.Until.UnixMicro()
	}
	return found
}

// ban returns what was known of the ban with a key.
func (s *knownAnswers) ban(key string, at int64) (ban algorithm.BanState) {
	if s.memory != nil {
		ban, _ = s.memory.BanOf([]byte(key))
		return ban
	}
	ban, _ = algorithm.ReadBan(s.values[key].Text, at) // there may be none, and a foreign value is no answer
	return ban
}

// Decide implements engine.Store. A counter has an error if it is not known which limits are in
// force.
func (s *knownAnswers) Decide(_ context.Context, counters []algorithm.Counter, _ bool, verdicts []algorithm.Verdict) {
	counters = slices.Clone(counters)
	for i := range counters {
		if verdicts[i].Err = s.findOverride(counters[i].Override); verdicts[i].Err != nil {
			counters[i].Override = nil
		}
	}
	ruling := algorithm.Rule(counters, algorithm.ToDecide)
	var looked []int
	for i := range counters {
		switch {
		case verdicts[i].Err != nil:
		case ruling.Decides(counters, i):
			verdicts[i], looked = s.look(&counters[i]), append(looked, i)
		default:
			verdicts[i] = ruling.Answer(&counters[i], s.now)
		}
	}
	s.strike(counters, looked, verdicts)
	for i := range counters {
		if verdicts[i].RetryAfter > 0 {
			knownbans.Hold(&counters[i], i, verdicts)
		}
	}
}

// findOverride fills in what an operator set, or returns why that is not known.
func (s *knownAnswers) findOverride(q *algorithm.OverrideQuery) error {
	if q == nil {
		return nil
	}
	o, err := s.override("", string(q.Key), q.Limit)
	q.Answer(o.found())
	return err
}

// look returns the store's answer for a counter.
func (s *knownAnswers) look(c *algorithm.Counter) algorithm.Verdict {
	if s.asked == nil || c.Limit == anyLimit.counted.Compiled {
		return algorithm.Verdict{At: s.now}
	}
	return s.asked.add(string(c.Key), c.Limit, c.Cost).verdict
}

// strike begins the bans that the refusal of this call completes, by the counters at these places.
func (s *knownAnswers) strike(all []algorithm.Counter, places []int, verdicts []algorithm.Verdict) {
	counters, answers := make([]algorithm.Counter, len(places)), make([]algorithm.Verdict, len(places))
	for n, at := range places {
		counters[n], answers[n] = all[at], verdicts[at]
		counters[n].Watched = all[at].WatchedIn(places)
	}
	for n, at := range places {
		if v := &verdicts[at]; v.Err == nil && algorithm.Struck(counters, answers, n) {
			ban := s.ban(string(counters[n].Key), v.At)
			v.RetryAfter = ban.Begins(counters[n].Limit, v.At)
		}
	}
}

// anyLimit stands for the limits of LimitFor that are not known. Every call fits into it.
var anyLimit = func() *ruleLimit {
	limit := algorithm.Windowed(algorithm.FixedWindow, algorithm.MaxPermits, algorithm.MaxWindow)
	return &ruleLimit{counted: engine.Limit{Compiled: &limit, Max: limit.Max, KeyTail: "any"}}
}()

// unobserved is the engine's observer of calls that are only explained.
type unobserved struct{}

func (unobserved) Decided(int, engine.Decided)            {}
func (unobserved) Charged(int, []float64)                 {}
func (unobserved) Banned(int)                             {}
func (unobserved) StoreFailed(*engine.Applied, error)     {}
func (unobserved) OverrideIgnored(*engine.Applied, error) {}
