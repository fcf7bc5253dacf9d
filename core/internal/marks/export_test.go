package marks

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// Sleep makes the last reading older.
func (s *Set) Sleep(d time.Duration) { s.follow.read = s.follow.read.Add(-d) }

// Rest makes a process rest, as if it had decided no calls for a while.
func (s *Set) Rest() {
	s.follow.mu.Lock()
	defer s.follow.mu.Unlock()
	s.follow.resting = true
	s.rest()
}

// Round is what a process does every half second.
func (s *Set) Round() { s.follow.round() }

// Impose imposes a ban of a rule that begins at its Since, and reports whether it need not wait.
func (s *Set) Impose(m Mark) bool {
	m.Kind, m.ByRule, m.number = Banned, true, m.Since
	m.ends = s.Now() + m.Until - m.Since
	s.strikes.addDue(dueBan{&m, s.Now()})
	s.strikes.setFull(false)
	s.impose(context.Background())
	s.strikes.mu.Lock()
	defer s.strikes.mu.Unlock()
	_, waits := s.strikes.due[m.field()]
	return !waits
}

// StrikeNow counts a refusal, and returns the last ban of the key.
func (s *Set) StrikeNow(key string, at int64, t *Terms) (begin, ends, bans int64) {
	if s.Redis == nil {
		state := s.strikes.here[key]
		if state == nil {
			state = new(struck)
			s.strikes.here = map[string]*struck{key: state}
		}
		state.strike(s.Now(), at, t)
		return state.begin, state.ends, state.bans
	}
	var replies []redisstore.CommandReply
	_ = s.redis.Operate(context.Background(), func(ctx context.Context) error {
		args := []any{at, t.Window, t.After, t.Span, t.Longest}
		replies = s.redis.ScriptEach(ctx, strikeScript, []redisstore.KeyScript{{Key: key, Args: args}})
		return nil
	})
	state, _, ok := readStruck(replies[0])
	if !ok {
		panic(replies[0].Err)
	}
	return state.begin, state.ends, state.bans
}
