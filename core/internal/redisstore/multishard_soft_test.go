package redisstore_test

import "testing"

// A soft rule on another shard is asked once it is known whether the call passes: of a call that does not,
// nothing is charged to it, not even for a moment.
func TestSoftRuleOnAnotherShard(t *testing.T) {
	server, client := startOne(t)
	s := newStore(t, client, patient)
	s.JoinKeys("") // different hash tags count as different shards
	hard, soft := counter("hard", daily(t, 2)), counter("soft", daily(t, 10))
	soft.Behind = 1
	for call := range 5 {
		written := server.Calls("set")
		v := s.take(t.Context(), hard, soft)
		taken := int64(1)
		if call >= 2 {
			taken = 0
		}
		if v[0].Taken != taken || v[1].Taken != taken || v[1].RetryAfter > 0 || v[1].Remaining != int64(max(8, 9-call)) {
			t.Errorf("call %d: %+v", call, v)
		}
		if n := server.Calls("set") - written; int64(n) != 2*taken {
			t.Errorf("call %d: %d keys are written", call, n)
		}
	}
}
