package denycache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	. "github.com/accesslimit/accesslimit/core/internal/localfirst/localtest"
)

// After this process has changed a key, the next call asks.
func TestOwnChangesAreSeenAtOnce(t *testing.T) {
	ctx := context.Background()
	shared := NewShared(t, 100)
	p := NewProcess(t, shared)
	limit := Bucket(t, 1, Hour, 2)
	c, ban := Counter("user:a", limit, 1), BanOf("user:a", 2, Second, 0)
	for name, change := range map[string]func(v algorithm.Verdict){
		"reset": func(algorithm.Verdict) { p.MustReset(t, c) },
		"give back": func(v algorithm.Verdict) {
			_ = p.GiveBack(ctx, []algorithm.Charge{{Key: c.Key, Limit: limit, Cost: 1, At: v.At}})
		},
		"ban":   func(algorithm.Verdict) { _, _, _ = p.Ban(ctx, ban.Key, Hour) },
		"unban": func(algorithm.Verdict) { p.MustReset(t, ban) },
		"reserve": func(algorithm.Verdict) {
			if v := p.Reserve(ctx, &c, 2*Hour); v.RetryAfter != 0 {
				t.Error("no turn")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p.MustReset(t, c, ban)
			p.MustTake(t, c)
			v := p.MustTake(t, c)
			p.MustRefuse(t, algorithm.FromStore, c, ban)
			shared.Asked.Store(0)
			change(v)
			p.Ask(c, ban)
			shared.WantAsked(t, 1)
		})
	}
}

// A refusal that was on its way when the key was reset is not repeated.
func TestARefusalOvertakenByAReset(t *testing.T) {
	shared := NewShared(t, 100)
	p, c := NewProcess(t, shared), Counter("user:a", Windowed(algorithm.SlidingWindow, 1, Hour), 1)
	p.MustTake(t, c)
	decided, reset := make(chan struct{}), make(chan struct{})
	shared.AfterDecide = func() {
		close(decided)
		<-reset
	}
	refused := make(chan algorithm.Verdict)
	go func() { refused <- p.Ask(c)[0] }()
	<-decided // waiting for the question is not enough: the Reset could still overtake it
	p.MustReset(t, c)
	close(reset)
	if v := <-refused; v.RetryAfter == 0 {
		t.Fatalf("%+v, want it refused before the reset", v)
	}
	shared.AfterDecide = nil
	p.MustTake(t, c)
}

// A refusal is not repeated if a call of another cost passed while it was on its way, because the
// wait is now longer.
func TestARefusalOvertakenByACharge(t *testing.T) {
	for _, kind := range []algorithm.Kind{algorithm.SlidingWindow, algorithm.FixedWindow} {
		limit := Windowed(kind, 4, 2*Second)
		shared := NewShared(t, 100)
		p := NewProcess(t, shared)
		small, large := Counter("user:a", limit, 2), Counter("user:a", limit, 3)
		p.MustTake(t, small)
		shared.AfterDecide = func() {
			shared.AfterDecide = nil
			p.MustTake(t, small)
		}
		if v := p.Ask(large)[0]; v.RetryAfter == 0 {
			t.Fatalf("%+v", v)
		}
		if v := p.Ask(large)[0]; v.From != algorithm.FromStore || v.Remaining != 0 {
			t.Errorf("%+v, want what the store says now", v)
		}
	}
}

// A strike invalidates refusals of other calls with the same ban: it may have banned their caller.
func TestAStrikeIsSeenAtOnce(t *testing.T) {
	p, limit := NewProcess(t, NewShared(t, 100)), Windowed(algorithm.FixedWindow, 1, Hour)
	c, watched := Counter("user:a", limit, 1), Counter("user:b", limit, 1)
	ban := BanOf("user:a", 1, Hour, 0)
	beside := ban
	beside.Watched = nil
	p.MustTake(t, c)
	p.MustTake(t, watched)
	p.MustRefuse(t, algorithm.FromStore, c, beside)
	p.MustRefuse(t, algorithm.FromRefusal, c, beside)
	p.MustRefuse(t, algorithm.FromStore, watched, ban)
	if v := p.Ask(c, beside); v[0].From != algorithm.FromStore || v[1].RetryAfter == 0 {
		t.Errorf("%+v, want it banned", v)
	}
}

// Changes by other processes are seen after a second.
func TestOthersChangesAreSeenWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(t, 100)
		here, there := NewProcess(t, shared), NewProcess(t, shared)
		c := Counter("user:a", Windowed(algorithm.SlidingWindow, 1, Hour), 1)
		here.MustTake(t, c)
		here.MustRefuse(t, algorithm.FromStore, c)
		there.MustReset(t, c)
		time.Sleep(time.Second - 2*time.Microsecond)
		here.MustRefuse(t, algorithm.FromRefusal, c)
		time.Sleep(2 * time.Microsecond)
		here.MustTake(t, c)
	})
}
