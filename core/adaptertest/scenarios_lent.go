package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// lentScenarios are about frameworks that lend their handlers the strings of a call, and overwrite them
// with those of the next call on the connection.
var lentScenarios = []scenario{
	{name: "nothing lent for a call is kept", run: nothingLentIsKept, httpOnly: true},
}

// lentRoutes are routes that count by what the call says: by a counter, by a check, and by a plan.
func lentRoutes(limiter *core.Limiter) []Route {
	monthly := func(zone string) core.Limit { return core.PerCalendarMonth(5, zone) }
	handle := func(count func(h Handling) error) func(Handling) {
		return func(h Handling) {
			if err := count(h); err != nil {
				h.Reply(500)
				return
			}
			h.Text("ok")
		}
	}
	plan := core.Rule{
		Name: "plan", Seconds: 60, Key: func(r core.Request) (string, error) { return r.Param("subject"), nil },
		LimitFor: func(r core.Request) (core.Limit, error) { return monthly(r.Query("zone")), nil },
	}
	return []Route{
		{Path: "/counter/{subject}", Handle: handle(func(h Handling) error {
			_, err := limiter.MustCounter(h.Query("name"), monthly(h.Query("zone"))).Allow(context.Background(), h.Query("subject"))
			return err
		})},
		{Path: "/check/{subject}", Handle: handle(func(h Handling) error {
			check, err := limiter.Check(core.Rule{Name: h.Query("name"), Limit: monthly(h.Query("zone"))})
			if err == nil && !h.Allow(check, h.Query("subject")) {
				err = errors.New("refused")
			}
			return err
		})},
		{Path: "/plan/{subject}", limits: limit(plan)},
	}
}

// nothingLentIsKept calls each route over one connection. The names, the subjects and the zones of a
// route's calls have one length, so that they lie in the same bytes.
func nothingLentIsKept(t *testing.T, s *site) {
	limiter := s.limiter(t)
	s.serve(t, App{Limiter: limiter, Routes: lentRoutes(limiter)})
	client := s.adapter.Connect(t, s.dial)
	defer client.Close()
	for path, zones := range map[string]string{
		"counter": "Asia/Tokyo Asia/Dubai Asia/Kabul", "check": "Asia/Seoul Asia/Dhaka Asia/Qatar", "plan": "Asia/Macau Asia/Amman Asia/Aqtau",
	} {
		for i, zone := range strings.Fields(zones) {
			call := newCall("GET", fmt.Sprintf("/%s/user:%d?name=%[1]s%d&subject=user:%[2]d&zone=%s", path, i, zone))
			if reply := s.doWith(t, client, call); reply.Status != 200 {
				t.Fatalf("%s: status %d", call.Path, reply.Status)
			}
		}
		for i, zone := range strings.Fields(zones) {
			name, subject := fmt.Sprint(path, i), fmt.Sprint("user:", i)
			if path == "plan" {
				name = path
			}
			d, err := limiter.MustCounter(name, core.PerCalendarMonth(5, zone)).Peek(context.Background(), subject)
			if err != nil || d.Remaining != 4 {
				t.Errorf("%q of %q in %s: %d are left, want 4: %v", name, subject, zone, d.Remaining, err)
			}
			if _, err := limiter.Guard(core.Rule{Name: name, Limit: core.PerCalendarMonth(6, zone)}); path == "check" && !errors.As(err, new(*core.RuleError)) {
				t.Errorf("%q no longer stands for 5 calls: %v", name, err)
			}
		}
	}
}
