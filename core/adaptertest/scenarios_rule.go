package adaptertest

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// ruleScenarios are about the other fields of a rule.
var ruleScenarios = []scenario{
	{name: "three limits in one rule", run: threeLimits},
	{name: "a plan has another limit", run: plans},
	{name: "a caller who does not stop is banned", run: banned},
	{name: "DryRun refuses nobody", run: dryRun},
	{name: "a soft limit only tells the handler", run: soft},
	{name: "soft limits in headers", run: softAlone},
	{name: "a log says who called", run: recorded},
	{name: "a calendar's day", run: calendarDay},
}

func threeLimits(t *testing.T, s *site) {
	rule := core.Rule{Name: "api", Seconds: 600, MaxCount: 3, Also: []core.Limit{core.PerDay(2), core.PerHour(2).Bucket(4)}}
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", limits: limit(rule)}}})
	reply := s.want(t, 200, "/shop/list")
	wantEntries(t, reply, `"api";r=2;t=`, `"api-24h";r=1;t=`, `"api-1h";r=3;t=`)
	wantHeader(t, reply, "Ratelimit-Policy", `"api";q=3;w=600, "api-24h";q=2;w=86400, "api-1h";q=4;w=7200`)
	s.want(t, 200, "/shop/list")
	for range 3 { // nothing is taken from the other limits
		reply = s.want(t, 429, "/shop/list")
		wantEntries(t, reply, `"api";r=1;t=`, `"api-24h";r=0;t=`, `"api-1h";r=2;t=`)
		if want := []string{"api-24h"}; !slices.Equal(reply.Violated, want) {
			t.Errorf("violated are %q, want %q", reply.Violated, want)
		}
	}
	rule.Also[0], rule.Also[1] = core.PerDay(1), core.PerHour(1).Bucket(1)
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", limits: limit(rule)}}})
	s.want(t, 200, "/shop/list")
	reply = s.want(t, 429, "/shop/list")
	if want := []string{"api-24h", "api-1h"}; !slices.Equal(reply.Violated, want) {
		t.Errorf("violated are %q, want %q", reply.Violated, want)
	}
}

func plans(t *testing.T, s *site) {
	plan := func(r core.Request) (core.Limit, error) {
		user, err := r.User()
		return map[string]core.Limit{"alice": core.PerHour(3), "bob": core.Unlimited, "": core.PerHour(1)}[user], err
	}
	rule := core.Rule{Name: "api", Seconds: 3600, MaxCount: 2, Key: core.ByUser, LimitFor: plan}
	s.serve(t, App{Limiter: s.limiter(t, identifiedBy(core.BearerToken(verify))), Routes: []Route{{Path: "/shop/list", limits: limit(rule)}}})
	for i := range 3 {
		reply := s.want(t, 200, "/shop/list", "Authorization: Bearer alice-token")
		wantEntries(t, reply, `"api";r=`+strconv.Itoa(2-i)+`;t=`)
		wantHeader(t, reply, "Ratelimit-Policy", `"api";q=3;w=3600`)
	}
	s.want(t, 429, "/shop/list", "Authorization: Bearer alice-token")
	for range 5 {
		reply := s.want(t, 200, "/shop/list", "Authorization: Bearer bob-token")
		wantHeader(t, reply, "Ratelimit", "")
	}
	s.want(t, 200, "/shop/list")
	s.want(t, 429, "/shop/list")
}

func banned(t *testing.T, s *site) {
	rule := core.Rule{Name: "shop", Seconds: 600, MaxCount: 1, Ban: core.Ban{After: 1, For: 2 * time.Hour}}
	limiter := s.limiter(t)
	s.serve(t, App{Limiter: limiter, Routes: []Route{{Path: "/shop/list", limits: limit(rule)}}})
	s.want(t, 200, "/shop/list")
	var reply Reply
	eventually(t, "the ban", func() bool {
		reply = s.want(t, 429, "/shop/list") // the first is the one call too many
		return strings.Contains(reply.Body, "Calls are refused")
	})
	wantEntries(t, reply, `"shop";r=0;t=`)
	if wait, err := strconv.Atoi(reply.Header.Get("Retry-After")); err != nil || wait < 6000 || wait > 7200 {
		t.Errorf("Retry-After is %q, want the two hours of the ban", reply.Header.Get("Retry-After"))
	}
	if !s.adapter.RPC && !strings.Contains(reply.Body, `"https://iana.org/assignments/http-problem-types#abnormal-usage-detected"`) {
		t.Errorf("the body is %q", reply.Body)
	}
	if s.adapter.RPC && reply.Outcome != 8 {
		t.Errorf("the code is %d, want RESOURCE_EXHAUSTED", reply.Outcome)
	}
	if !slices.Equal(reply.Violated, []string{"shop"}) {
		t.Errorf("the reply is %+v", reply)
	}
	if _, err := operate.New(limiter).Unban(context.Background(), "shop", "ip:127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	if _, err := limiter.MustCounter("shop", core.Limit{Max: 1, Window: 10 * time.Minute}).Reset(context.Background(), "ip:127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	s.want(t, 200, "/shop/list")
}

func dryRun(t *testing.T, s *site) {
	events := make(chan core.Event, 100)
	limiter := s.limiter(t, func(o *core.Options) {
		o.OnDecision = func(_ context.Context, e core.Event) {
			if e.DryRun {
				events <- e
			}
		}
	})
	rule := core.Rule{Name: "tried", Seconds: 600, MaxCount: 1, Mode: core.DryRun, Ban: core.Ban{After: 1, For: time.Hour}}
	slots := core.Rule{Name: "slots", Limit: core.Limit{Max: 1, Window: 600 * time.Second, Algorithm: core.Concurrency}, Mode: core.DryRun}
	s.serve(t, App{Limiter: limiter, Routes: []Route{{Path: "/shop/list", limits: limit(rule, slots)}}})
	decided := make(map[string][]core.Reason)
	call := func() {
		reply := s.want(t, 200, "/shop/list")
		wantHeader(t, reply, "Ratelimit", "")
		wantHeader(t, reply, "Ratelimit-Policy", "")
		for range 2 {
			select {
			case e := <-events:
				decided[e.Decision.Rule] = append(decided[e.Decision.Rule], e.Decision.Reason)
			case <-time.After(patience):
				t.Fatal("OnDecision received no decision of a rule in DryRun")
			}
		}
	}
	for range 4 {
		call()
	}
	if got, exceeded := decided["tried"], core.DryRunExceeded; !slices.Equal(got, []core.Reason{core.Allowed, exceeded, exceeded, exceeded}) {
		t.Errorf("OnDecision received %v, want that one call is allowed and three would have been refused", got)
	}
	eventually(t, "a call finds the slot that another one has given back", func() bool {
		call()
		return decided["slots"][len(decided["slots"])-1] == core.Allowed
	})
}

// tell replies with the decision that the handler finds.
func tell(h Handling) {
	d, ok := core.DecisionFrom(h.Context())
	if !ok {
		h.Text("nothing")
		return
	}
	h.Text(string(d.Reason) + " " + d.Rule + " " + d.Key)
}

func soft(t *testing.T, s *site) {
	limiter := s.limiter(t)
	rule := core.Rule{Name: "soft", Seconds: 600, MaxCount: 1, Mode: core.Soft, Also: []core.Limit{core.PerDay(9)}}
	hard := core.Rule{Name: "hard", Seconds: 600, MaxCount: 3}
	s.serve(t, App{Limiter: limiter, Routes: []Route{{Path: "/shop/list", limits: limit(rule, hard), Handle: tell}}})
	for i, want := range []string{"nothing", "soft_exceeded soft ip:127.0.0.1", "soft_exceeded soft ip:127.0.0.1"} {
		reply := s.want(t, 200, "/shop/list")
		if reply.Body != want {
			t.Errorf("the handler saw %q, want %q", reply.Body, want)
		}
		wantEntries(t, reply, `"hard";r=`+strconv.Itoa(2-i)+`;t=`)
		wantHeader(t, reply, "Retry-After", "")
	}
	reply := s.want(t, 429, "/shop/list")
	if !slices.Equal(reply.Violated, []string{"hard"}) || strings.Contains(reply.Body, "soft") {
		t.Errorf("the refusal is %+v", reply)
	}
	wantEntries(t, reply, `"hard";r=0;t=`)
}

func softAlone(t *testing.T, s *site) {
	rule := core.Rule{Name: "soft", Seconds: 600, MaxCount: 1, Mode: core.Soft}
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", limits: limit(rule), Handle: tell}}})
	for _, want := range []string{"nothing", "soft_exceeded soft ip:127.0.0.1", "soft_exceeded soft ip:127.0.0.1"} {
		reply := s.want(t, 200, "/shop/list")
		wantEntries(t, reply, `"soft";r=0;t=`)
		wantHeader(t, reply, "Ratelimit-Policy", `"soft";q=1;w=600`)
		wantHeader(t, reply, "Retry-After", "")
		if reply.Body != want {
			t.Errorf("the handler saw %q, want %q", reply.Body, want)
		}
	}
}

// recorded makes its calls over one connection, because some frameworks reuse a connection's buffer
// for the next call.
func recorded(t *testing.T, s *site) {
	limiter := s.limiter(t)
	s.serve(t, App{Limiter: limiter, Routes: []Route{{Path: "/shop/list", limits: limit(core.Rule{
		Name:  "log",
		Limit: core.Limit{Max: 3, Window: 600 * time.Second}.Log(),
		Note:  func(r core.Request) string { return r.Header("X-Device")[0] },
	})}}})
	client := s.adapter.Connect(t, s.dial)
	defer client.Close()
	for _, device := range []string{"phone", "watch", "radio", "thief"} {
		s.doWith(t, client, newCall("GET", "/shop/list", "X-Device: "+device))
	}
	records, err := limiter.MustLog("log",
		core.Limit{Max: 3, Window: 10 * time.Minute, Algorithm: core.SlidingLog}).Records(context.Background(), "ip:127.0.0.1")

	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, record := range records {
		notes = append(notes, record.Note)
	}
	if want := []string{"radio", "watch", "phone"}; !slices.Equal(notes, want) {
		t.Errorf("the log says %q, want %q", notes, want)
	}
}

func calendarDay(t *testing.T, s *site) {
	rule := core.Rule{Name: "day", Limit: core.PerCalendarDay(1, "UTC")}
	s.serve(t, App{Limiter: s.limiter(t), Routes: []Route{{Path: "/shop/list", limits: limit(rule)}}})
	s.want(t, 200, "/shop/list")
	reply := s.get(t, "/shop/list")
	if reply.Status == 200 { // midnight came between the two calls
		reply = s.want(t, 429, "/shop/list")
	}
	wantEntries(t, reply, `"day";r=0;t=`)
	wantHeader(t, reply, "Ratelimit-Policy", `"day";q=1;w=86400`)
	_, text, _ := strings.Cut(reply.Header.Get("Ratelimit"), ";t=")
	wait, err := strconv.Atoi(text)
	const day = 24 * 3600
	left := day - int(time.Now().Unix()%day)
	if apart := (wait - left + day) % day; err != nil || wait < 1 || wait > day || apart > 60 && apart < day-60 {
		t.Errorf("t=%s, want the %d seconds until midnight", text, left)
	}
}
