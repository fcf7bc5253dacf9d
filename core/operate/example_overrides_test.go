package operate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

// A part of an admin tool: it gives one tenant more, blocks another, and prints what holds.
func ExampleOperator_Overrides() {
	limiter, _ := core.New(core.Options{}) // with Redis, all processes obey
	defer limiter.Close()
	_ = limiter.MustGuard(core.Rule{
		Name: "api", Limit: core.PerSecond(100),
		Key: core.ByHeader("X-Tenant"),
	})

	overrides, err := operate.New(limiter).Overrides("api")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := operate.WithActor(context.Background(), "bob@ops", "ticket 7")
	monthEnd := time.Date(2099, time.January, 1, 0, 0, 0, 0, time.UTC)
	for subject, override := range map[string]operate.Override{
		"X-Tenant:acme":     {Limits: []core.Limit{core.PerSecond(500), core.PerDay(1_000_000)}, Until: monthEnd, Note: "contract 17"},
		"ip:203.0.113.0/24": {Blocked: true}, // a network
	} {
		if err := overrides.Set(ctx, subject, override); err != nil {
			fmt.Println(err)
		}
	}
	for after, more := "", true; more; more = after != "" {
		page, next, err := overrides.List(ctx, after, 100)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, o := range page {
			fmt.Printf("%s: %v (%s: %s)\n", o.Subject, o, o.Author, o.Note)
		}
		after = next
	}
	existed, err := overrides.Remove(ctx, "ip:203.0.113.0/24")
	fmt.Println(existed, err)
	// Output:
	// X-Tenant:acme: 500/s, 1000000/24h until 2099-01-01T00:00:00Z (bob@ops: contract 17)
	// ip:203.0.113.0/24: blocked (bob@ops: ticket 7)
	// true <nil>
}

// The acts of operators, newest first.
func ExampleOperator_Audit() {
	limiter, _ := core.New(core.Options{})
	defer limiter.Close()
	operator := operate.New(limiter)
	ctx := operate.WithActor(context.Background(), "bob@ops", "scraper")
	if _, err := operator.Ban(ctx, "search", "user:mallory", time.Hour); err != nil {
		fmt.Println(err)
	}
	if _, err := operator.Unban(ctx, "search", "user:mallory"); err != nil {
		fmt.Println(err)
	}

	entries, err := operator.Audit(ctx, "", 10)
	if err != nil {
		fmt.Println(err)
	}
	for _, e := range entries {
		fmt.Printf("%s: %s %s in %s (%s)\n", e.Author, e.Act, e.Subject, e.Rule, e.Note)
	}
	// Output:
	// bob@ops: unban user:mallory in search (scraper)
	// bob@ops: ban user:mallory in search (scraper)
}
