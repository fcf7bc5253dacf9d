package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

func banCommand() *cli.Command {
	return &cli.Command{
		Name: "ban", Category: aboutRedis, Usage: "refuse a subject, or a network, for a while", ArgsUsage: "RULE SUBJECT",
		Description: "accesslimit ban login 203.0.113.7 -for 24h -note 'scraper'",
		Flags:       actFlags(&cli.StringFlag{Name: "for", OnlyOnce: true, Usage: "how long: a `TIME` such as 30m, 24h or 7d; required"}),
		Action:      ban,
	}
}

func unbanCommand() *cli.Command {
	return &cli.Command{
		Name: "unban", Category: aboutRedis, Usage: "end a ban, and forget earlier ones", ArgsUsage: "RULE SUBJECT",
		Description: "accesslimit unban login 203.0.113.7 -note 'a customer'",
		Flags:       actFlags(),
		Action: act{
			name: "unban", done: "%[1]s is not banned from %[2]q any more.", unchanged: "%[1]s was not banned from %[2]q.",
			do: func(ctx context.Context, s *session, rule, subject string) (bool, error) {
				return s.Unban(ctx, rule, subject)
			},
		}.run,
	}
}

func resetCommand() *cli.Command {
	return &cli.Command{
		Name: "reset", Category: aboutRedis, Usage: "forget what a subject has used of a rule", ArgsUsage: "RULE SUBJECT",
		Description: "accesslimit reset api user:alice -note 'ticket 17'",
		Flags:       actFlags(),
		Action: act{
			name: "reset", done: "%[1]s starts afresh under %[2]q.", unchanged: "%[1]s had used nothing of %[2]q.",
			do: func(ctx context.Context, s *session, rule, subject string) (bool, error) {
				return s.Reset(ctx, rule, subject)
			},
		}.run,
	}
}

func ban(ctx context.Context, c *cli.Command) error {
	if !c.IsSet("for") {
		return usage(c, "say how long the ban lasts: -for 24h")
	}
	span, err := spanOf(c.String("for"))
	if err != nil {
		return usage(c, "-for: %v", err)
	}
	return act{
		name: "ban", done: "%[1]s is banned from %[2]q ", details: untilWhen(span), unchanged: "%[1]s is paused under %[2]q for longer already.",
		do: func(ctx context.Context, s *session, rule, subject string) (bool, error) {
			return s.Ban(ctx, rule, subject, span)
		},
	}.run(ctx, c)
}

// untilWhen returns a function that says when a ban ends. It uses the clock of Redis, as the lists
// do, because this machine's clock may differ.
func untilWhen(span time.Duration) func(context.Context, *session, string, string) string {
	return func(ctx context.Context, s *session, rule, subject string) string {
		ban, ok, err := s.BanOf(ctx, rule, subject)
		if err != nil || !ok {
			return "for " + span.String() + "."
		}
		return "until " + ban.Until.Format("2006-01-02 15:04:05 UTC") + "."
	}
}

// spanOf reads a span as Go writes it, or a number of days: 90s, 24h, 7d.
func spanOf(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 12); err == nil && n > 0 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	span, err := time.ParseDuration(text)
	if err != nil || span <= 0 {
		return 0, fmt.Errorf("%q is no time: write 30m, 24h or 7d", text)
	}
	return span, nil
}
