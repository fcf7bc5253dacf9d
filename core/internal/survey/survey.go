// Package survey has the store that the engine uses for reports on how calls would be decided. It
// answers with what was read before, and charges nothing.
package survey

import (
	"context"
	"slices"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/knownbans"
	"github.com/accesslimit/accesslimit/core/internal/limiter"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// Survey is the engine.Store of one report. [Survey.Read] reads overrides and bans. After that, the
// Survey notes what the engine asks as questions, and answers that everything fits. [Survey.Ask] asks
// the limiter's store all of the questions at once, and then the Survey gives its answers to the
// engine. It is not safe for concurrent use.
type Survey struct {
	engine.Store // a report needs only Decide
	parts        *limiter.Parts
	values       map[string]redisstore.Value // of overrides and bans, by key
	questions    map[questionKey]*Question   // nil before Read
	now          int64                       // microseconds since the epoch
}

// New returns an empty Survey.
func New(parts *limiter.Parts) *Survey { return &Survey{parts: parts} }

// Read reads the overrides and bans with these keys.
func (s *Survey) Read(ctx context.Context, keys []string) {
	s.values, s.questions = make(map[string]redisstore.Value), make(map[questionKey]*Question)
	unique := keys[:0]
	for _, key := range keys {
		if _, ok := s.values[key]; !ok {
			unique, s.values[key] = append(unique, key), redisstore.Value{}
		}
	}
	if s.parts.Memory == nil {
		for i, value := range s.parts.Redis.GetAll(ctx, unique) {
			s.values[unique[i]] = value
		}
		return
	}
	for _, key := range unique {
		o, ok := s.parts.Memory.Override([]byte(key))
		s.values[key] = redisstore.Value{Text: overrides.Stored(&o.Override, ok), Ok: ok}
	}
}

// Override returns an override that was read, in its stored form. ok is false if there is none.
func (s *Survey) Override(key string) (text string, ok bool) {
	v := s.values[key]
	return v.Text, v.Ok || failure.ClassOf(v.Err) == failure.Foreign
}

// Found returns what a store finds when it looks for an override of a rule with the limit own. If
// the store did not answer, that may be a block that this process knows.
func (s *Survey) Found(key string, own *algorithm.Limit) (algorithm.FoundOverride, error) {
	text, ok := s.Override(key)
	err := s.values[key].Err
	switch {
	case ok:
		o, wrong := algorithm.ReadOverride(text)
		if wrong != nil {
			return algorithm.FoundOverride{What: algorithm.OverrideInvalid}, nil
		}
		return o.FoundBy(own), nil
	case err == nil:
		return algorithm.FoundOverride{}, nil
	}
	if lasts := s.parts.Known.Lasts([]byte(key)); lasts > 0 {
		return algorithm.BlockedFor(lasts, s.parts.Known.StoreTime()), nil
	}
	return algorithm.FoundOverride{}, err
}

// Ban returns the state of the ban with a key at a time, as it was read from Redis or, without
// Redis, as it is now.
func (s *Survey) Ban(key string, at int64) (ban algorithm.BanState) {
	if s.parts.Memory != nil {
		ban, _ = s.parts.Memory.BanOf([]byte(key))
		return ban
	}
	ban, _ = algorithm.ReadBan(s.values[key].Text, at) // there may be no ban, and a foreign value does not count
	return ban
}

// Pause returns the state of the pause with a key at a time, as it was read from Redis or, without
// Redis, as it is now.
func (s *Survey) Pause(key string, at int64) (pause algorithm.PauseState) {
	if s.parts.Memory != nil {
		pause, _ = s.parts.Memory.PauseOf([]byte(key))
		return pause
	}
	pause, _ = algorithm.ReadPause(s.values[key].Text, at) // a foreign value does not count
	return pause
}

// Any stands for limits that are not known. Every call fits into it.
var Any = func() *algorithm.Limit {
	limit := algorithm.Any()
	return &limit
}()

// Decide implements engine.Store. A counter has an error if it is not known which limits are in
// force.
func (s *Survey) Decide(_ context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict) {
	counters = slices.Clone(counters)
	for i := range counters {
		if verdicts[i].Err = s.findOverride(counters[i].Override); verdicts[i].Err != nil {
			counters[i].Override = nil
		}
	}
	applied := algorithm.ApplyOverrides(counters, algorithm.ToDecide)
	var looked []int
	for i := range counters {
		switch {
		case verdicts[i].Err != nil:
		case applied.Decides(counters, i):
			verdicts[i], looked = s.look(&counters[i]), append(looked, i)
		default:
			verdicts[i] = applied.Answer(&counters[i], s.now)
		}
	}
	if charge { // a call that only looks is no strike
		s.strike(counters, looked, verdicts)
	}
	for i := range counters {
		if verdicts[i].RetryAfter > 0 {
			knownbans.Hold(&counters[i], i, verdicts)
		}
	}
}

// findOverride fills in what an operator set, or returns why that is not known.
func (s *Survey) findOverride(q *algorithm.OverrideQuery) error {
	if q == nil {
		return nil
	}
	found, err := s.Found(string(q.Key), q.Limit)
	q.Answer(found)
	return err
}

// look returns the store's answer for a counter.
func (s *Survey) look(c *algorithm.Counter) algorithm.Verdict {
	if s.questions == nil || c.Limit == Any {
		return algorithm.Verdict{At: s.now}
	}
	v := s.About(string(c.Key), c.Limit, c.Cost).verdict
	v.Remaining = max(0, v.Remaining)
	return v
}

// strike begins the bans that the refusal of this call completes, for the counters at these
// indexes.
func (s *Survey) strike(all []algorithm.Counter, places []int, verdicts []algorithm.Verdict) {
	counters, answers := make([]algorithm.Counter, len(places)), make([]algorithm.Verdict, len(places))
	for n, at := range places {
		counters[n], answers[n] = all[at], verdicts[at]
		counters[n].Watched = all[at].WatchedIn(places)
	}
	for n, at := range places {
		if v := &verdicts[at]; v.Err == nil && algorithm.Struck(counters, answers, n) {
			ban := s.Ban(string(counters[n].Key), v.At)
			v.RetryAfter = ban.Begins(counters[n].Limit, v.At)
		}
	}
}
