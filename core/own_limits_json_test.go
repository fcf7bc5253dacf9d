package core_test

import (
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// The reply is JSON with the words and the numbers of the headers.
func TestOwnLimitsAsJSON(t *testing.T) {
	limiter, now := newLimiter(t, core.Options{}), time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC).UnixMicro()
	core.UseClock(limiter, func() int64 { return now })
	guard := newGuard(t, limiter,
		core.Rule{Name: `say "hi"`, Limit: core.PerMinute(2).Fixed(), Also: []core.Limit{core.PerCalendarDay(9, "UTC")}},
		core.Rule{Name: "bucket", Limit: core.PerSecond(1).Bucket(5)},
		core.Rule{Name: "slot", Limit: core.InFlight(1)},
	)
	for i, want := range []string{
		`{"limits":[{"name":"say \"hi\"","limit":2,"remaining":2,"reset":0,"window":60,"policy":"\"say \\\"hi\\\"\";q=2;w=60"},` +
			`{"name":"say \"hi\"-day","limit":9,"remaining":9,"reset":0,"window":86400,"policy":"\"say \\\"hi\\\"-day\";q=9;w=86400"},` +
			`{"name":"bucket","limit":5,"remaining":5,"reset":0,"window":5,"policy":"\"bucket\";q=5;w=5"},` +
			`{"name":"slot","limit":1,"remaining":1,"policy":"\"slot\";q=1;qu=\"concurrent-requests\""}]}`,
		`{"limits":[{"name":"say \"hi\"","limit":2,"remaining":1,"reset":60,"window":60,"policy":"\"say \\\"hi\\\"\";q=2;w=60"},` +
			`{"name":"say \"hi\"-day","limit":9,"remaining":8,"reset":7200,"window":86400,"policy":"\"say \\\"hi\\\"-day\";q=9;w=86400"},` +
			`{"name":"bucket","limit":5,"remaining":4,"reset":1,"window":5,"policy":"\"bucket\";q=5;w=5"},` +
			`{"name":"slot","limit":1,"remaining":0,"reset":30,"policy":"\"slot\";q=1;qu=\"concurrent-requests\""}]}`,
	} {
		v := newView("GET", "/rate_limit")
		own := guard.OwnLimits(v)
		own.SetHeader(v.response)
		status, contentType, body := own.Reply()
		if status != 200 || contentType != "application/json" || string(body) != want {
			t.Errorf("call %d: %d %s\n%s, want\n%s", i, status, contentType, body, want)
		}
		if len(v.response) != 2 || v.response.Get("Content-Type") != "application/json" || v.response.Get("Cache-Control") != "no-store" {
			t.Errorf("the headers are %v", v.response)
		}
		guard.Check(newView("GET", "/reply"))
	}
}

// A caller's own limits are shown in one form, whatever the headers are.
func TestOwnLimitsDoNotDependOnTheHeaders(t *testing.T) {
	limiter, _ := newDraft11(t, core.Options{})
	guard := newGuard(t, limiter, core.Rule{Name: "api", Limit: core.PerMinute(6).Bucket(6), Cost: core.CostBySize(1000)})
	for range 2 {
		v := newView("POST", "/")
		v.size = 1000
		wantStatus(t, guard, v, 200)
	}
	const want = `{"limits":[{"name":"api","limit":6,"remaining":4,"reset":20,"window":60,"policy":"\"api\";q=6;w=60"}]}`
	if _, _, body := guard.OwnLimits(newView("GET", "/")).Reply(); string(body) != want {
		t.Errorf("%s, want %s", body, want)
	}
}
