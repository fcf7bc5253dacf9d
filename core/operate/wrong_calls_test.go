package operate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// operatorCall is an act or a question of an operator.
type operatorCall func(ops *operate.Operator, ctx context.Context, name, subject string) error

// ofOverrides is a call on the overrides of a name.
func ofOverrides(call func(o operate.Overrides, ctx context.Context, subject string) error) operatorCall {
	return func(ops *operate.Operator, ctx context.Context, name, subject string) error {
		overrides, err := ops.Overrides(name)
		if err != nil {
			return err
		}
		return call(overrides, ctx, subject)
	}
}

// aboutSubjects are the calls about one subject. Their names begin with those of the operator's methods.
var aboutSubjects = map[string]operatorCall{
	"Ban": func(ops *operate.Operator, ctx context.Context, name, subject string) error {
		return errorOf(ops.Ban(ctx, name, subject, time.Hour))
	},
	"Unban": func(ops *operate.Operator, ctx context.Context, name, subject string) error {
		return errorOf(ops.Unban(ctx, name, subject))
	},
	"BanOf": func(ops *operate.Operator, ctx context.Context, name, subject string) error {
		_, _, err := ops.BanOf(ctx, name, subject)
		return err
	},
	"ImportMarks": func(ops *operate.Operator, ctx context.Context, name, subject string) error {
		_, _, err := ops.ImportMarks(ctx, []operate.Mark{{Rule: name, Subject: operate.SubjectText(subject), Kind: "blocked"}})
		return err
	},
	"Reset": func(ops *operate.Operator, ctx context.Context, name, subject string) error {
		return errorOf(ops.Reset(ctx, name, subject))
	},
	"Overrides.Get": ofOverrides(func(o operate.Overrides, ctx context.Context, subject string) error {
		_, _, err := o.Get(ctx, subject)
		return err
	}),
	"Overrides.Set": ofOverrides(func(o operate.Overrides, ctx context.Context, subject string) error {
		return o.Set(ctx, subject, per(core.PerHour(5)))
	}),
	"Overrides.Remove": ofOverrides(func(o operate.Overrides, ctx context.Context, subject string) error {
		return errorOf(o.Remove(ctx, subject))
	}),
	"Inspect": func(ops *operate.Operator, ctx context.Context, _, subject string) error {
		return errorIn(ops.Inspect(ctx, subject))
	},
	"Inspect in parts": func(ops *operate.Operator, ctx context.Context, _, subject string) error {
		_, _, err := ops.InspectPart(ctx, subject, "", 100)
		return err
	},
}

// aboutRules are further questions.
var aboutRules = map[string]operatorCall{
	"Bans": func(ops *operate.Operator, ctx context.Context, name, _ string) error {
		_, _, err := ops.Bans(ctx, name, "", 1)
		return err
	},
	"ExportMarks": func(ops *operate.Operator, ctx context.Context, _, _ string) error {
		_, err := ops.ExportMarks(ctx)
		return err
	},
	"Overrides.List": ofOverrides(func(o operate.Overrides, ctx context.Context, _ string) error {
		_, _, err := o.List(ctx, "", 1)
		return err
	}),
	"Top": func(ops *operate.Operator, ctx context.Context, name, _ string) error {
		_, err := ops.Top(ctx, name, time.Minute)
		return err
	},
	"Audit": func(ops *operate.Operator, ctx context.Context, _, _ string) error {
		_, err := ops.Audit(ctx, "", 1)
		return err
	},
}

func errorIn(_ operate.Explanation, err error) error { return err }

// operable returns a limiter with a rule n, to which an operator can do everything.
func operable(t *testing.T, options core.Options) *core.Limiter {
	t.Helper()
	limiter := newLimiter(t, options)
	attach(t, limiter, core.Rule{Name: "n", Limit: core.PerHour(5), Ban: core.Ban{After: 1, For: time.Hour}})
	return limiter
}

// A missing name or subject is a *RuleError, and so is a bare address, which names a caller whom no rule
// counts. Nothing is done.
func TestWrongCallsOfOperators(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := operable(t, options)
		ops := operate.New(limiter)
		for what, call := range aboutSubjects {
			limitertest.WantRuleError(t, call(ops, background, "n", ""), ruleIn(what), "subject", "")
			for _, address := range []string{"192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "fe80::1%eth0"} {
				err := call(ops, background, "n", address)
				limitertest.WantRuleError(t, err, ruleIn(what), "subject", address)
				if !strings.Contains(err.Error(), "use limiter.IPSubject(addr)") {
					t.Errorf("%s of %s: %v", what, address, err)
				}
			}
			if ruleIn(what) != "" {
				limitertest.WantRuleError(t, call(ops, background, "", "s"), "", "name", "")
			}
		}
		limitertest.WantRuleError(t, aboutRules["Bans"](ops, background, "", ""), "", "rule", "")
		limitertest.WantRuleError(t, aboutSubjects["Reset"](ops, background, "unknown", "s"), "unknown", "name", "unknown")
		if entries := auditOf(t, limiter); len(entries) > 0 {
			t.Errorf("the audit is %+v", entries)
		}
	})
}

// ruleIn returns the rule that the errors of a call name.
func ruleIn(call string) string {
	if strings.HasPrefix(call, "Inspect") {
		return ""
	}
	return "n"
}

// A page or a span that cannot be is a *RuleError.
func TestWrongPages(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options) {
		ops := operate.New(operable(t, options))
		overrides, err := ops.Overrides("n")
		if err != nil {
			t.Fatal(err)
		}
		wrong := make(map[string]error)
		for _, n := range []int{0, -1, 1001} {
			_, _, wrong[fmt.Sprint("Bans ", n)] = ops.Bans(background, "n", "", n)
			_, _, wrong[fmt.Sprint("AllBans ", n)] = ops.AllBans(background, "", n)
			_, _, wrong[fmt.Sprint("List ", n)] = overrides.List(background, "", n)
			_, wrong[fmt.Sprint("Audit ", n)] = ops.Audit(background, "", n)
		}
		for _, before := range []string{"s1", "1", "1-", "-1-1", "(1-1", "1-1 "} {
			_, wrong["Audit before "+before] = ops.Audit(background, before, 1)
		}
		for _, span := range []time.Duration{0, -time.Minute, time.Second, 24 * time.Hour} {
			_, wrong["Top "+span.String()] = ops.Top(background, "", span)
		}
		for call, err := range wrong {
			if !errors.As(err, new(*core.RuleError)) {
				t.Errorf("%s: %v, want a RuleError", call, err)
			}
		}
	})
}

// An operator whose context has ended gets its error, and nothing is done.
func TestOperatorsWhoHaveLeft(t *testing.T) {
	ended, cancel := context.WithCancel(background)
	cancel()
	onBothEngines(t, func(t *testing.T, options core.Options) {
		limiter := operable(t, options)
		for _, calls := range []map[string]operatorCall{aboutSubjects, aboutRules} {
			for what, call := range calls {
				if err := call(operate.New(limiter), ended, "n", "s"); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrStore) {
					t.Errorf("%s: %v, want %v and no ErrStore", what, err, context.Canceled)
				}
			}
		}
		if entries := auditOf(t, limiter); len(entries) > 0 {
			t.Errorf("the audit is %+v", entries)
		}
	})
}

// While Redis is down or hangs, each call says within Timeout that it does not answer.
func TestOperatorsWithoutRedis(t *testing.T) {
	hung := redistest.Start(t)
	for name, options := range map[string]core.Options{"down": deadRedis(t), "hung": {Redis: hung.Client(t), Timeout: 300 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			limiter := operable(t, options)
			hung.Stop()
			defer hung.Continue()
			for _, calls := range []map[string]operatorCall{aboutSubjects, aboutRules} {
				for what, call := range calls {
					began := time.Now()
					if err := call(operate.New(limiter), background, "n", "s"); !errors.Is(err, core.ErrStore) || time.Since(began) > patient {
						t.Errorf("%s: %v after %v, want ErrStore", what, err, time.Since(began))
					}
				}
			}
		})
	}
}
