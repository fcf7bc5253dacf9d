package marks

import (
	"context"
	_ "embed"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

var (
	//go:embed strike.lua
	strikeText   string
	strikeScript = algorithm.NewScript(strikeText)

	//go:embed record.lua
	recordText   string
	recordScript = algorithm.NewScript(recordText)
)

const (
	// maxWaiting bounds the strikes that wait, and the bans. Others are lost until a refusal in another
	// window.
	maxWaiting = 10_000
	// gathering is how long strikes wait for others, to be sent together: in an attack that costs Redis a
	// quarter of what single ones cost.
	gathering = 10 * time.Millisecond
	// maxHere is how many subjects with strikes a process without Redis remembers.
	maxHere = 100_000
)

// strikes counts refusals in the background.
type strikes struct {
	// sent has what was sent of late, by key and window, so that a caller who is refused many times in a
	// window strikes once. Two that share a place are sent more often, which changes nothing.
	sent [1 << 14]atomic.Uint64

	mu      sync.Mutex
	waiting []Strike
	running bool
	due     map[string]dueBan  // bans that are not written yet, by their fields
	full    bool               // none can be written until the next reading
	here    map[string]*struck // without Redis
}

// Strike counts a refusal, after the answer. The key and the subject are copied. Without Redis the
// refusal is now: slots are refused by a clock that does not follow the one by which bans end.
func (s *Set) Strike(key []byte, rule string, subject []byte, at int64, t *Terms, imposes bool) {
	if s.Redis == nil {
		at = s.SinceEpoch()
	}
	place, sent := s.strikes.place(key, at/t.Window)
	if place.Load() == sent {
		return
	}
	place.Store(sent) // first, because sendStrikes takes it back if it fails
	st := Strike{string(key), rule, nameOf(subject), at, t, imposes}
	if s.Redis == nil {
		s.strikeHere(st)
	} else if s.strikes.add(st) {
		s.Redis.InBackground(s.sendStrikes)
	}
}

// place returns where is noted that a strike was sent, and what is there then.
func (s *strikes) place(key []byte, window int64) (place *atomic.Uint64, sent uint64) {
	hash := maphash.Bytes(seed, key)
	return &s.sent[hash%uint64(len(s.sent))], hash ^ uint64(window)*0x9e3779b97f4a7c15
}

// add adds a strike to those that wait, and reports whether they have to be sent.
func (s *strikes) add(st Strike) (start bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) < maxWaiting {
		s.waiting = append(s.waiting, st)
	}
	start = !s.running
	s.running = true
	return start
}

// take returns some of the strikes that wait, or none if there are none. Then the next one has to start
// the sending.
func (s *strikes) take() (some []Strike) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.waiting), inATrip)
	some, s.waiting = s.waiting[:n:n], s.waiting[n:]
	if n == 0 {
		s.waiting, s.running = nil, false
	}
	return some
}

// sendStrikes sends the strikes that wait, and writes the bans that they lead to.
func (s *Set) sendStrikes() {
	ctx := context.Background()
	for some := s.strikes.take(); len(some) > 0; some = s.strikes.take() {
		calls := make([]redisstore.KeyScript, len(some))
		for i, st := range some {
			t := st.Terms
			calls[i] = redisstore.KeyScript{Key: st.Key, Args: []any{st.At, t.Window, t.After, t.Span, t.Longest}}
		}
		var replies []redisstore.CommandReply
		_ = s.redis.Operate(ctx, func(ctx context.Context) error {
			replies = s.redis.ScriptEach(ctx, strikeScript, calls)
			return nil
		})
		for i, reply := range replies {
			state, now, ok := readStruck(reply)
			if !ok {
				place, _ := s.strikes.place([]byte(some[i].Key), 0)
				place.Store(0)
				continue
			}
			if ban, ok := some[i].ban(&state, now); ok {
				ban.setEnd(s.Now(), now)
				s.strikes.addDue(dueBan{ban, s.Now()})
			}
		}
		s.impose(ctx)
		if len(some) < inATrip {
			time.Sleep(gathering)
		}
	}
}

// readStruck reads the reply of strike.lua.
func readStruck(reply redisstore.CommandReply) (state struck, now int64, ok bool) {
	list, _ := reply.Value.([]any)
	if reply.Err != nil || len(list) != 4 {
		return state, 0, false
	}
	for i, n := range [...]*int64{&state.begin, &state.ends, &state.bans, &now} {
		if *n, ok = list[i].(int64); !ok {
			return state, 0, false
		}
	}
	return state, now, true
}

// ban returns the mark of the ban that is in force after a strike, if there is one that the strike
// imposes.
func (st *Strike) ban(state *struck, now int64) (*Mark, bool) {
	m := &Mark{
		Rule: st.Rule, Subject: st.Subject, Kind: Banned, ByRule: true, Note: st.Terms.why(), Bans: int(state.bans),
		Since: state.begin, Until: state.ends, number: state.begin,
	}
	return m, st.Imposes && state.ends > now
}

// strikeHere counts a strike without Redis.
func (s *Set) strikeHere(st Strike) {
	now := s.SinceEpoch()
	s.strikes.mu.Lock()
	if s.strikes.here == nil {
		s.strikes.here = make(map[string]*struck)
	}
	state := s.strikes.here[st.Key]
	if state == nil {
		s.strikes.makeRoom(now)
		state = new(struck)
		s.strikes.here[st.Key] = state
	}
	state.strike(now, st.At, st.Terms)
	ban, banned := st.ban(state, now)
	s.strikes.mu.Unlock()
	if banned {
		s.writeHere([]act{{ban, 0}})
	}
}

// makeRoom removes what is forgotten if there is no room, and then some others.
func (s *strikes) makeRoom(now int64) {
	if len(s.here) < maxHere {
		return
	}
	for key, state := range s.here {
		if state.forgotten <= now {
			delete(s.here, key)
		}
	}
	for key := range s.here { // in no order
		if len(s.here) < maxHere*15/16 {
			return
		}
		delete(s.here, key)
	}
}

// Pardon forgets the strikes under a key, and reports whether there were any.
func (s *Set) Pardon(ctx context.Context, key []byte) (existed bool, err error) {
	place, _ := s.strikes.place(key, 0)
	place.Store(0)
	if s.Redis == nil {
		s.strikes.mu.Lock()
		defer s.strikes.mu.Unlock()
		state := s.strikes.here[string(key)]
		existed = state != nil && state.forgotten > s.SinceEpoch()
		delete(s.strikes.here, string(key))
		return existed, nil
	}
	return s.Redis.Reset(ctx, key)
}

// Record is what is remembered of a subject's refusals.
type Record struct {
	Strikes int64 // windows in a row in which it was refused, and which count towards the next ban
	Bans    int64 // so far
}

// Record returns what is remembered under a key of strikes.
func (s *Set) Record(ctx context.Context, key []byte, t *Terms) (r Record, err error) {
	if s.Redis == nil {
		s.strikes.mu.Lock()
		defer s.strikes.mu.Unlock()
		if state := s.strikes.here[string(key)]; state != nil {
			r = state.record(s.SinceEpoch(), t)
		}
		return r, nil
	}
	err = s.Redis.Operate(ctx, func(ctx context.Context) error {
		reply, err := s.Redis.Script(ctx, recordScript, []string{string(key)}, t.Window)
		if err != nil || len(reply) == 0 {
			return err
		}
		n, ok := reply[0].(int64)
		m, alsoOK := reply[1].(int64)
		if r = (Record{n, m}); !ok || !alsoOK {
			return unexpected(reply)
		}
		return nil
	})
	return r, err
}
