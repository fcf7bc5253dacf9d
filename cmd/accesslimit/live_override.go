package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core/operate"
)

func overrideCommand() *cli.Command {
	return &cli.Command{
		Name: "override", Category: aboutRedis, Usage: "set, remove or list limits of single subjects", ArgsUsage: "RULE [SUBJECT [LIMITS]]",
		Description: "accesslimit override api user:alice '500/m, 10000/24h' -note 'ticket 17'",
		Flags: actFlags(
			&cli.BoolFlag{Name: "unlimited", Usage: "lift all limits"},
			&cli.BoolFlag{Name: "blocked", Usage: "refuse all calls"},
			&cli.BoolFlag{Name: "remove", Usage: "go back to the limits of the rule"},
			&cli.StringFlag{Name: "for", OnlyOnce: true, Usage: "how long: a `TIME` such as 24h or 30d; by default for ever"},
		),
		Action: override,
	}
}

// overrideKinds are the flags of override of which an act without LIMITS needs one.
var overrideKinds = []string{"unlimited", "blocked", "remove"}

func override(ctx context.Context, c *cli.Command) error {
	given := max(0, c.Args().Len()-2) // LIMITS
	for _, kind := range overrideKinds {
		if c.IsSet(kind) {
			given++
		}
	}
	switch {
	case c.Args().Len() == 1 && given == 0:
		return listOverrides(ctx, c)
	case given != 1:
		return usage(c, "say LIMITS such as '500/m, 10000/24h', or one of -unlimited, -blocked and -remove; or name only a rule, to list its overrides")
	case c.Bool("remove"):
		return act{
			name: "override removed", done: "The limits of %[2]q hold for %[1]s again.", unchanged: "%[1]s has no override of %[2]q.", do: removeOverride,
		}.run(ctx, c)
	}
	o, err := overrideOf(c)
	if err != nil {
		return err
	}
	return act{
		name: "override", more: max(0, c.Args().Len()-2), done: fmt.Sprintf("%%[1]s has an override of %%[2]q: %s.", endOf(o)),
		do: func(ctx context.Context, s *session, rule, subject string) (bool, error) {
			overrides, err := s.Overrides(rule)
			if err != nil {
				return false, err
			}
			return true, overrides.Set(ctx, subject, o)
		},
	}.run(ctx, c)
}

// overrideOf returns the override that the flags describe.
func overrideOf(c *cli.Command) (o operate.Override, err error) {
	o = operate.Override{Unlimited: c.Bool("unlimited"), Blocked: c.Bool("blocked")}
	if limits := c.Args().Get(2); limits != "" {
		if o.Limits, err = operate.ParseLimits(limits); err != nil {
			return o, usage(c, "%q: %v", limits, err)
		}
	}
	if c.IsSet("for") {
		span, err := spanOf(c.String("for"))
		if err != nil {
			return o, usage(c, "-for: %v", err)
		}
		o.Until = time.Now().Add(span).Truncate(time.Second)
	}
	return o, nil
}

// endOf returns an override in words, with its end.
func endOf(o operate.Override) string {
	if o.Until.IsZero() {
		return o.String() + ", until it is removed"
	}
	return o.String()
}

func removeOverride(ctx context.Context, s *session, rule, subject string) (bool, error) {
	overrides, err := s.Overrides(rule)
	if err != nil {
		return false, err
	}
	return overrides.Remove(ctx, subject)
}

func listOverrides(ctx context.Context, c *cli.Command) error {
	s, err := openKnownRules(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	overrides, err := s.Overrides(c.Args().First())
	if err != nil {
		return err
	}
	all, err := allPages(func(after string) ([]operate.Override, string, error) {
		return overrides.List(ctx, after, pageSize)
	})
	if err != nil {
		return err
	}
	return show(c, all, func() error {
		for _, o := range all {
			fmt.Fprintf(c.Root().Writer, "%s  %v, by %s: %s\n", operate.SubjectText(o.Subject), o, printable(o.Author), printable(o.Note))
		}
		if len(all) == 0 {
			fmt.Fprintln(c.Root().Writer, "There are no overrides.")
		}
		return nil
	})
}
