package core_test

import (
	"math"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

func TestUnlimitedDirectCalls(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		var heard decisions
		options.OnDecision = heard.note
		limiter := newLimiter(t, options)
		for _, n := range []int{0, 1, math.MaxInt} {
			d, err := limiter.MustCounter("n", core.Unlimited).AllowN(background, "s", n)
			if err != nil || !d.Allowed || d.Reason != core.Allowed || d.Limit != core.Unlimited || d.Remaining != math.MaxInt || d.Source != core.FromNobody || d.Key != "s" {
				t.Errorf("%+v, %v", d, err)
			}
		}
		if d := heard.last(t, 3); d.Limit != core.Unlimited {
			t.Errorf("OnDecision heard %+v", d)
		}
		if options.Redis != nil && len(options.Redis.Keys(background, "*").Val()) > 0 {
			t.Error("who has no limit has a key")
		}
		if _, err := limiter.Counter("", core.Unlimited); err == nil {
			t.Error("a counter without a name")
		}
		if d, err := limiter.MustCounter("n", core.Unlimited).Allow(background, ""); err == nil || d.Allowed {
			t.Errorf("nobody: %+v", d)
		}
		_, err := limiter.MustCounter("n", core.Unlimited).AllowN(background, "s", -1)
		wantRuleError(t, err, "n", "n", "-1")
	})
}

// The Decision beside an error is the zero one, also for who has no limit.
func TestUnlimitedOfAnEndedCaller(t *testing.T) {
	v, leave := leaving(newView("GET", "/"))
	leave()
	d, err := newLimiter(t, core.Options{}).MustCounter("n", core.Unlimited).Allow(v.ctx, "s")
	if err == nil || d.Allowed || d.Reason != "" || d.Rule != "" {
		t.Errorf("%+v, %v", d, err)
	}
}

// Every call that asks for a limit takes a plan that has none.
func TestUnlimitedTurnsAndRecords(t *testing.T) {
	limiter := newLimiter(t, core.Options{})
	for range 3 {
		d, err := limiter.MustPacer("n", core.Unlimited).Acquire(background, "s", 1000)
		if err != nil || !d.Allowed || d.Wait != 0 {
			t.Errorf("Acquire: %+v, %v", d, err)
		}
		if d, err := limiter.MustPacer("n", core.Unlimited).Reserve(background, "s", 1000); err != nil || !d.Allowed || d.Wait != 0 {
			t.Errorf("Reserve: %+v, %v", d, err)
		}
		if d, err := limiter.MustLog("n", core.Unlimited).AllowN(background, "s", 1, "note"); err != nil || !d.Allowed {
			t.Errorf("AllowNoted: %+v, %v", d, err)
		}
	}
	if records, err := limiter.MustLog("n", core.Unlimited).Records(background, "s"); err != nil || records != nil {
		t.Errorf("Records: %v, %v", records, err)
	}
	if _, err := resetOf(limiter, background, "n", "s", core.Unlimited); err != nil {
		t.Errorf("Reset: %v", err)
	}
	if _, err := resetOf(limiter, background, "n", "", core.Unlimited); err == nil {
		t.Error("Reset of nobody is no error")
	}
}
