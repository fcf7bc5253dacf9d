package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/console"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/core/outgoing"
	"github.com/accesslimit/accesslimit/core/rulefile"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
)

// entryPoint is something that users call. prepare makes what is asked.
type entryPoint struct {
	name    string
	prepare func(c *cell) asker
}

var (
	// counted is the limit of everything that counts here. Nothing comes back while a test runs.
	counted = core.PerDay(10)
	// openBill are the permits that a bill is opened with, and usedBill those that it is settled with.
	openBill, usedBill = 3, 2
)

var entryPoints = []entryPoint{
	{"middleware, fail_open", middleware(core.FailOpen)},
	{"middleware, fail_closed", middleware(core.FailClosed)},
	{"middleware, count_locally", middleware(core.CountLocally(1))},
	{"handle", handle(core.StorePolicy{})},
	{"handle, fail_open", handle(core.FailOpen)},
	{"handle, fail_closed", handle(core.FailClosed)},
	{"handle, count_locally", handle(core.CountLocally(1))},
	{"bill, opened", func(c *cell) asker {
		counter := c.limiter.MustCounter("bill", counted)
		return asker{ask: func(subject string) string {
			_, d, err := counter.Open(context.Background(), subject, 1)
			return answerOf(d, err)
		}, charged: c.used("bill")}
	}},
	{"bill, settled", settledBill},
	{"turn, fail_open", turn(core.FailOpen)},
	{"turn, fail_closed", turn(core.FailClosed)},
	{"turn, count_locally", turn(core.CountLocally(1))},
	{"turn, refused", refusedTurn},
	{"banned caller", func(c *cell) asker {
		elsewhere := c.judge()
		limitertest.Attach(c.t, elsewhere, markedRule)
		a := c.marked(elsewhere, func(o *operate.Operator, subject string) error {
			return limitertest.ErrorOf(o.Ban(context.Background(), "marked", subject, time.Hour))
		})
		limitertest.Eventually(c.t, "this process has read both bans", func() bool {
			known, err := operate.New(c.limiter).KnownBans("marked")
			return err == nil && len(known) == 2
		})
		return a
	}},
	{"blocked caller", func(c *cell) asker {
		return c.marked(c.limiter, func(o *operate.Operator, subject string) error {
			overrides, err := o.Overrides("marked")
			if err != nil {
				return err
			}
			return overrides.Set(context.Background(), subject, operate.Override{Blocked: true})
		})
	}},
	{"act: ban", func(c *cell) asker {
		limitertest.Attach(c.t, c.limiter, markedRule)
		o, judge := operate.New(c.limiter), c.judge()
		limitertest.Attach(c.t, judge, markedRule)
		return asker{ask: func(subject string) string {
			return answered(limitertest.ErrorOf(o.Ban(context.Background(), "marked", subject, time.Hour)))
		}, charged: func(subject string) int {
			_, ok, err := operate.New(judge).BanOf(context.Background(), "marked", subject)
			return c.count(ok, err)
		}}
	}},
	{"act: override", func(c *cell) asker {
		judge := c.judge()
		limitertest.Attach(c.t, c.limiter, markedRule)
		limitertest.Attach(c.t, judge, markedRule)
		o, err := operate.New(c.limiter).Overrides("marked")
		known, err2 := operate.New(judge).Overrides("marked")
		if err = errors.Join(err, err2); err != nil {
			c.t.Fatal(err)
		}
		return asker{ask: func(subject string) string {
			return answered(o.Set(context.Background(), subject, operate.Override{Limits: []core.Limit{core.PerHour(7)}}))
		}, charged: func(subject string) int {
			_, ok, err := known.Get(context.Background(), subject)
			return c.count(ok, err)
		}}
	}},
	{"document, followed", followedDocument},
	{"document, at the start", startedDocument},
	{"document, published", func(c *cell) asker {
		return asker{ask: func(subject string) string {
			_, err := c.document(c.client, subject, c.within).Write(context.Background(), documentText, rulefile.Version{})
			return answered(err)
		}, charged: func(subject string) int {
			v, err := c.document(c.site.judge, subject, patience).Read(context.Background())
			return c.count(v.Number == 1, err)
		}}
	}},
	{"report", explained},
	{"list of bans", func(c *cell) asker {
		limitertest.Attach(c.t, c.limiter, markedRule)
		return asker{ask: func(string) string {
			_, _, err := operate.New(c.limiter).Bans(context.Background(), "marked", "", 10)
			return answered(err)
		}}
	}},
	{"other reports", otherReports},
	{"other acts", otherActs},
	{"page", operatorPage},
	{"ping", func(c *cell) asker {
		return asker{ask: func(string) string { return answered(c.limiter.Ping(context.Background())) }}
	}},
}

// judge returns a limiter that sees the servers without the wire, and waits for them.
func (c *cell) judge() *core.Limiter {
	return limitertest.New(c.t, core.Options{Redis: c.site.judge, Timeout: patience})
}

// used returns a function that returns the permits that a subject has used of counted.
func (c *cell) used(name string) func(subject string) int {
	judge := c.judge()
	return func(subject string) int { return used(c.t, judge, name, subject, counted) }
}

// count returns 1 for something that is there.
func (c *cell) count(is bool, err error) int {
	switch {
	case err != nil:
		c.t.Errorf("%s: %v", c.point.name, err)
		return -1
	case is:
		return 1
	default:
		return 0
	}
}

// answered returns the answer of what returns an error.
func answered(err error) string {
	var failed *core.StoreError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &failed):
		return "error " + string(failed.Class)
	default:
		return "error " + err.Error()
	}
}

// answerOf returns the answer of a handle.
func answerOf(d core.Decision, err error) string {
	if err != nil {
		return answered(err)
	}
	return fmt.Sprintf("%s by %s", d.Reason, d.Source)
}

func middleware(policy core.StorePolicy) func(*cell) asker {
	return func(c *cell) asker {
		return asker{ask: c.endpoint(ruleFor("middleware", counted, policy)), charged: c.used("middleware")}
	}
}

// endpoint returns a function that makes calls behind a rule.
func (c *cell) endpoint(rule core.Rule) func(subject string) string {
	e := newEndpoint(c.limiter, rule)
	return func(subject string) string {
		k := e.call(subject)
		return fmt.Sprintf("%d %s by %s", k.status, k.Reason, k.Source)
	}
}

func handle(policy core.StorePolicy) func(*cell) asker {
	return func(c *cell) asker {
		counter := c.limiter.MustCounter("handle", counted)
		if policy != (core.StorePolicy{}) {
			counter = counter.WithStorePolicy(policy)
		}
		return asker{ask: func(subject string) string {
			return answerOf(counter.Allow(context.Background(), subject))
		}, charged: c.used("handle")}
	}
}

// settledBill settles bills that were opened before the fault, the last of them again and again until
// that succeeds.
func settledBill(c *cell) asker {
	counter, bills := c.limiter.MustCounter("bill", counted), make(map[string]*core.Bill)
	open := func(subject string) error {
		bill, _, err := counter.Open(context.Background(), subject, openBill)
		bills[subject] = bill
		return err
	}
	c.must(open(c.before()), open(c.subject))
	return asker{
		ask: func(subject string) string { return answered(bills[subject].Settle(context.Background(), usedBill)) },
		again: func() error {
			err := bills[c.subject].Settle(context.Background(), usedBill)
			if err == nil || errors.Is(err, core.ErrBillUnknown) {
				err = open(c.after())
			}
			return err
		},
		charged: c.used("bill"),
	}
}

// turn takes turns of a pace that is counted as PerDay(10).Bucket(10).
func turn(policy core.StorePolicy) func(*cell) asker {
	return func(c *cell) asker {
		pace := counted.Bucket(10)
		turns, judge := c.turns(c.limiter, policy), c.judge()
		return asker{ask: func(subject string) string {
			turn, err := turns.Take(context.Background(), subject)
			if err == nil {
				turn.Release()
			}
			return answered(err)
		}, charged: func(subject string) int { return used(c.t, judge, "api", subject, pace) }}
	}
}

func (c *cell) turns(limiter *core.Limiter, policy core.StorePolicy) *outgoing.Turns {
	c.t.Helper()
	turns, err := outgoing.New(limiter, outgoing.Rule{Name: "api", Limit: counted.Bucket(10), InFlight: 5, MaxWait: time.Second, OnStoreError: policy})
	if err != nil {
		c.t.Fatal(err)
	}
	return turns
}

// refusedTurn reports that the server refused a call that was sent before the fault. All processes
// know of the pause in the end.
func refusedTurn(c *cell) asker {
	turns, judge := c.turns(c.limiter, core.FailOpen), c.turns(c.judge(), core.FailOpen)
	flight := make(map[string]*outgoing.Turn)
	take := func(subject string) (err error) {
		flight[subject], err = turns.Take(context.Background(), subject)
		return err
	}
	next := func(turns *outgoing.Turns, subject string) string {
		turn, err := turns.Take(context.Background(), subject)
		if wait := new(outgoing.WaitError); errors.As(err, &wait) && wait.Paused {
			return "paused"
		} else if err == nil {
			turn.Release()
		}
		return answered(err)
	}
	c.must(take(c.before()), take(c.subject))
	return asker{ask: func(subject string) string {
		flight[subject].Answered(outgoing.Answer{Refused: true, Wait: time.Hour})
		flight[subject].Release()
		return next(turns, subject)
	}, again: func() error {
		if next(judge, c.subject) != "paused" {
			return errors.New("another process does not know of the pause")
		}
		return take(c.after())
	}}
}

// markedRule is a rule that fails open. Operators can ban and block its callers.
var markedRule = core.Rule{Name: "marked", Limit: counted, Key: func(r core.Request) (string, error) { return r.Header("Subject")[0], nil }}

// marked makes calls of subjects that an operator's process has marked before the fault.
func (c *cell) marked(by *core.Limiter, mark func(o *operate.Operator, subject string) error) asker {
	call, o := c.endpoint(markedRule), operate.New(by)
	c.must(mark(o, c.before()), mark(o, c.subject))
	return asker{ask: call, again: func() error { return mark(o, c.after()) }}
}

const documentText = "version: 1\nrules:\n  - {name: start, limit: 10/24h}\n  - {name: followed, limit: 10/24h}\n"

// document returns the document with a prefix, as a client has it that waits so long.
func (c *cell) document(client redis.UniversalClient, prefix string, within time.Duration) *rulefile.Document {
	c.t.Helper()
	d, err := rulefile.NewDocument(client, prefix)
	if err == nil {
		d, err = d.WithTimeout(within)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

// publish writes the first version of a document, unless it is there.
func publish(d *rulefile.Document) error {
	_, err := d.Write(context.Background(), documentText, rulefile.Version{})
	if conflict := new(rulefile.ConflictError); errors.As(err, &conflict) {
		return nil
	}
	return err
}

// must ends the test if there is an error.
func (c *cell) must(errs ...error) {
	c.t.Helper()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatalf("%s: %v", c.point.name, err)
	}
}

// followedDocument looks for a new version. The present one stays in force.
func followedDocument(c *cell) asker {
	d := c.document(c.client, "followed", c.within)
	c.must(publish(c.document(c.site.judge, "followed", patience)))
	set, err := rulefile.Follow(c.limiter, rulefile.Functions{}, d)
	if err != nil {
		c.t.Fatal(err)
	}
	bounded.Cleanup(c.t, set.Close)
	return asker{stop: set.Close, ask: func(string) string {
		err := set.Reload()
		return fmt.Sprintf("version %d, %s", set.Document().Number, answered(err))
	}, again: func() error { return publish(d) }}
}

// startedDocument starts a process that follows a document and has a fallback.
func startedDocument(c *cell) asker {
	d := c.document(c.client, "start", c.within)
	c.must(publish(c.document(c.site.judge, "start", patience)))
	return asker{ask: func(string) string {
		set, err := rulefile.Follow(c.limiter, rulefile.Functions{}, d, rulefile.Rules(core.Rule{Name: "start", Limit: counted}))
		if err != nil {
			return answered(err)
		}
		defer set.Close()
		if set.Document().Number == 0 {
			return "the fallback"
		}
		return fmt.Sprint("version ", set.Document().Number)
	}, again: func() error { return publish(d) }}
}

// explained explains a call under a rule of each policy.
func explained(c *cell) asker {
	for name, policy := range map[string]core.StorePolicy{"open": core.FailOpen, "closed": core.FailClosed, "local": core.CountLocally(1)} {
		rule := ruleFor(name, counted, policy)
		rule.Key = markedRule.Key
		limitertest.Attach(c.t, c.limiter, rule)
	}
	return asker{ask: func(subject string) string {
		x, err := operate.New(c.limiter).Explain(context.Background(), operate.Call{Method: "GET", Path: "/", Header: http.Header{"Subject": {subject}}})
		answer := answered(err) + ","
		for _, name := range []string{"open", "closed", "local"} {
			r := limitertest.RuleOf(c.t, x, name)
			answer += fmt.Sprintf(" %s=%s", name, r.Reason)
			if !r.Applies || r.Subject != subject || len(r.Limits) != 1 || r.Limits[0].Limit != counted {
				c.t.Errorf("the report says %+v", r)
			}
		}
		return answer
	}}
}

// otherReports asks all that is left.
func otherReports(c *cell) asker {
	limitertest.Attach(c.t, c.limiter, markedRule)
	o, ctx := operate.New(c.limiter), context.Background()
	overrides, err := o.Overrides("marked")
	c.must(err)
	return asker{ask: func(subject string) string {
		return answersOf(
			func() error { _, err := o.Top(ctx, "", time.Hour); return err },
			func() error { _, _, err := o.BanOf(ctx, "marked", subject); return err },
			func() error { _, err := o.Inspect(ctx, subject); return err },
			func() error { _, err := o.Audit(ctx, "", 10); return err },
			func() error { _, _, err := overrides.Get(ctx, subject); return err },
			func() error { _, _, err := overrides.List(ctx, "", 10); return err },
		)
	}}
}

// otherActs ends what nobody has begun.
func otherActs(c *cell) asker {
	limitertest.Attach(c.t, c.limiter, markedRule)
	o, ctx := operate.New(c.limiter), context.Background()
	overrides, err := o.Overrides("marked")
	c.must(err)
	return asker{ask: func(subject string) string {
		return answersOf(
			func() error { return limitertest.ErrorOf(o.Unban(ctx, "marked", subject)) },
			func() error { return limitertest.ErrorOf(o.Reset(ctx, "marked", subject)) },
			func() error { return limitertest.ErrorOf(overrides.Remove(ctx, subject)) },
		)
	}}
}

// answersOf asks all at once, and returns the different answers. A breaker that has opened and a call
// that waited for an earlier one stand for the error of the others.
func answersOf(ask ...func() error) string {
	answers := make([]string, len(ask))
	together(len(ask), func(i int) { answers[i] = answered(ask[i]()) })
	answers = sorted(answers)
	if len(answers) > 1 {
		answers = slices.DeleteFunc(answers, func(answer string) bool {
			return answer == "error "+string(core.StoreBreakerOpen) || answer == "error "+string(core.StoreNoConnection)
		})
	}
	return strings.Join(answers, ", ")
}

// operatorPage shows the first page of a process that has shown none before.
func operatorPage(c *cell) asker {
	viewer := func(*http.Request) (console.Identity, error) {
		return console.Identity{Name: "operator", Role: console.Viewer}, nil
	}
	return asker{ask: func(string) string {
		page, err := console.New(c.limiter, console.Options{Authorize: viewer})
		if err != nil {
			return err.Error()
		}
		defer page.Close()
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/limits/", nil))
		says := healthOnPage.FindStringSubmatch(w.Body.String())
		return fmt.Sprint(w.Code, ", ", strings.Join(says[min(1, len(says)):], ""))
	}}
}

// healthOnPage finds what the page says of Redis: that it answers, or the class of the error.
var healthOnPage = regexp.MustCompile(`(Redis answers), in|Redis did not answer \((\w+)\)|Redis refuses to count: (\w+)`)
