package core_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Rules of a call that is refused for its cost. Each has a subject of its own. The limit of login is
// used up, the subject of blocked is blocked, and that of free may be.
var (
	loginRule   = core.Rule{Name: "login", Limit: core.PerDay(1), Key: key("caller"), Ban: core.Ban{After: 1, For: time.Hour}}
	plainRule   = core.Rule{Name: "plain", Limit: core.PerDay(3), Key: key("plain"), Cost: cost(4)}
	sizedRule   = core.Rule{Name: "sized", Limit: core.PerDay(3), Key: key("sized"), Cost: core.CostBySize(1)}
	costlyRule  = core.Rule{Name: "costly", Limit: core.PerDay(3), Key: key("costly"), Cost: cost(4), Overrides: true}
	blockedRule = core.Rule{Name: "blocked", Limit: core.PerDay(3), Key: key("blocked"), Overrides: true}
	freeRule    = core.Rule{Name: "free", Limit: core.PerDay(3), Key: key("free"), Overrides: true}
	bannedRule  = core.Rule{Name: "banned", Limit: core.PerDay(3), Key: key("banned"), Ban: core.Ban{ByHand: true}}
	countedRule = core.Rule{Name: "counted", Limit: core.PerDay(3), Key: key("counted")}
	refusesNone = core.Rule{Name: "dry", Limit: core.PerDay(3), Key: key("blocked"), Overrides: true, Mode: core.DryRun}
	softRule    = core.Rule{Name: "soft", Limit: core.PerDay(3), Key: key("blocked"), Overrides: true, Mode: core.Soft}
)

// The calls of these rules, in any order, get this answer.
var refusedCosts = map[string]struct {
	rules []core.Rule
	want  int
	by    string
}{
	"a cost alone":                         {[]core.Rule{plainRule}, 400, "plain"},
	"a cost beside a limit that is used":   {[]core.Rule{loginRule, plainRule}, 400, "plain"},
	"a cost where nobody is blocked":       {[]core.Rule{freeRule, plainRule, loginRule}, 400, "plain"},
	"a block beside a cost":                {[]core.Rule{loginRule, blockedRule, plainRule}, 429, "blocked"},
	"a block beside a size":                {[]core.Rule{freeRule, blockedRule, sizedRule}, 429, "blocked"},
	"a block beside two costs":             {[]core.Rule{plainRule, blockedRule, costlyRule, countedRule}, 429, "blocked"},
	"two costs":                            {[]core.Rule{costlyRule, plainRule, loginRule}, 400, "plain"},
	"a size beside a cost with overrides":  {[]core.Rule{costlyRule, sizedRule}, 413, "sized"},
	"a cost beside blocks that only count": {[]core.Rule{refusesNone, softRule, plainRule}, 400, "plain"},
	"a ban beside a cost":                  {[]core.Rule{bannedRule, plainRule, freeRule}, 400, "plain"},
	"a ban beside a cost with overrides":   {[]core.Rule{bannedRule, costlyRule, loginRule}, 400, "costly"},
}

// A block goes before a cost that never fits, on every deployment, in a call and in its explanation.
// A ban does not. Nothing is charged for such a call, and nobody is banned.
func TestABlockGoesBeforeACost(t *testing.T) {
	onEveryDeployment(t, func(t *testing.T, options core.Options) {
		prefixes := 0
		for name, test := range refusedCosts {
			for i := range test.rules {
				rules := append(test.rules[i:len(test.rules):len(test.rules)], test.rules[:i]...)
				prefixes++
				options.Prefix = fmt.Sprint("p", prefixes)
				limiter := newLimiter(t, options)
				charge(t, limiter, "login", "caller", loginRule.Limit, 1)
				for _, of := range []core.Rule{blockedRule, refusesNone, softRule} {
					operator{t, limiter, of.Name, of.Limit}.block("blocked", time.Time{})
				}
				guard := attach(t, limiter, rules...)
				if strings.HasPrefix(name, "a ban") {
					ban(t, limiter, "banned", "banned", time.Hour)
				}
				t.Run(fmt.Sprint(name, i), func(t *testing.T) { wantRefusedAs(t, limiter, guard, test.want, test.by) })
			}
		}
	})
}

func wantRefusedAs(t *testing.T, limiter *core.Limiter, guard *core.Guard, want int, by string) {
	t.Helper()
	v := newView("POST", "/")
	v.size = 4
	x, err := operate.New(limiter).ExplainView(v)
	if reason := reasonOf[want]; err != nil || x.Reason != reason || x.Rule != by {
		t.Errorf("explained as %s by %q, %v; want %s by %q", x.Reason, x.Rule, err, reason, by)
	}
	for range 2 { // the second time, it is known which server refuses
		answer := guard.Check(v)
		if status(answer) != want || answer.Refusal.Decision.Rule != by || answer.Refusal.Decision.Reason != reasonOf[want] {
			t.Errorf("answered with %d, %+v; want %d by %q", status(answer), answer.Refusal, want, by)
		}
	}
	if isBanned(t, limiter, "caller") {
		t.Error("the call banned a caller")
	}
	for _, r := range guard.Rules() {
		if subject, _ := r.Key(nil); r.Name != loginRule.Name {
			wantLeft(t, limiter, r.Name, subject, r.Limit, 3)
		}
	}
}

var reasonOf = map[int]core.Reason{
	http.StatusTooManyRequests: core.Blocked, http.StatusBadRequest: core.CostTooHigh, http.StatusRequestEntityTooLarge: core.CostTooHigh,
}

// A block on a server that is down goes before a cost on another one.
func TestABlockOnAShardThatIsDown(t *testing.T) {
	ring := redistest.StartRing(t, 2)
	client := ring.Client(t, func(o *redis.RingOptions) { o.HeartbeatFrequency = time.Hour }) // it does not rehash
	limiter := newLimiter(t, core.Options{Redis: client, Timeout: patient})
	blocked, costly, counted := blockedRule, costlyRule, countedRule
	subject := subjectOn(t, ring.Nodes()[0], limiter, "blocked")
	blocked.Key, costly.Key = key(subject), key(subjectOn(t, ring.Nodes()[1], limiter, "costly"))
	counted.Key = key(subjectOn(t, ring.Nodes()[1], limiter, "counted"))
	guards := []*core.Guard{
		attach(t, limiter, counted, blocked, costly), attach(t, limiter, plainRule, blocked, costly), attach(t, limiter, plainRule, costly, blocked),
	}
	setOverride(t, limiter, "blocked", subject, operate.Override{Blocked: true})
	ring.Nodes()[0].Kill()
	for i, guard := range guards {
		answer := guard.Check(newView("GET", "/"))
		if status(answer) != 429 || answer.Refusal.Decision.Reason != core.Blocked || answer.Refusal.Decision.Rule != "blocked" {
			t.Errorf("guard %d answers %d, %+v", i, status(answer), answer.Refusal)
		}
	}
}

// isBanned reports whether a rule bans a subject. One of the Guards with the rule must be in use,
// because Inspect does not show those of others.
func isBanned(t *testing.T, limiter *core.Limiter, subject string) bool {
	t.Helper()
	x, err := operate.New(limiter).Inspect(background, subject)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Rules) == 0 {
		t.Fatal("no rule is attached")
	}
	return slices.ContainsFunc(x.Rules, func(r operate.ExplainedRule) bool { return !r.BannedUntil.IsZero() })
}
