package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core/operate"
)

func bansCommand() *cli.Command {
	return &cli.Command{
		Name: "bans", Category: aboutRedis, Usage: "list the bans in force, of all rules or of one", ArgsUsage: "[RULE]",
		Description: "accesslimit bans -rules limits.yaml\naccesslimit bans login", Flags: liveFlags(), Action: bans,
	}
}

func topCommand() *cli.Command {
	return &cli.Command{
		Name: "top", Category: aboutRedis, Usage: "list the subjects that were refused most, over all processes", ArgsUsage: "[RULE]",
		Description: "accesslimit top -span 1h login",
		Flags: append([]cli.Flag{&cli.StringFlag{Name: "span", OnlyOnce: true, Value: "10m", Usage: "the `TIME` to look back: 1m, 10m or 1h"}},
			append(redisFlags(), asJSON())...),
		Action: top,
	}
}

func auditCommand() *cli.Command {
	return &cli.Command{
		Name: "audit", Category: aboutRedis, Usage: "list what operators did, newest first",
		Description: "accesslimit audit -n 20",
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "n", OnlyOnce: true, Value: 50, Usage: "how many `ENTRIES`, up to 1000"},
			&cli.StringFlag{Name: "before", OnlyOnce: true, Usage: "an `ID`, as -json shows it: list older entries"},
		}, append(redisFlags(), asJSON())...),
		Action: audit,
	}
}

func bans(ctx context.Context, c *cli.Command) error {
	rule, begin := c.Args().First(), openRules
	switch {
	case rule == "":
		begin = openKnownRules
	case c.String("rules") == "": // they would only tell how the bans came about
		begin = func(ctx context.Context, c *cli.Command) (*session, error) { return open(ctx, c) }
	}
	s, err := begin(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	all, err := allPages(func(after string) ([]operate.BanEntry, string, error) {
		if rule == "" {
			return s.AllBans(ctx, after, pageSize)
		}
		return s.Bans(ctx, rule, after, pageSize)
	})
	if err != nil {
		return err
	}
	if len(all) == 0 && rule != "" {
		s.warnOfRule(ctx, rule)
	}
	return show(c, all, func() error {
		for _, ban := range all {
			fmt.Fprintln(c.Root().Writer, ban)
		}
		if len(all) == 0 {
			fmt.Fprintln(c.Root().Writer, "Nobody is banned.")
		}
		return nil
	})
}

// pageSize is the number of entries that are asked for at once.
const pageSize = 1000

// allPages returns the entries on all pages of a list, not nil.
func allPages[E any](page func(after string) (entries []E, next string, err error)) ([]E, error) {
	all := []E{}
	for after, more := "", true; more; more = after != "" {
		entries, next, err := page(after)
		if err != nil {
			return nil, err
		}
		all, after = append(all, entries...), next
	}
	return all, nil
}

// topSpans are the times that top can look back.
var topSpans = map[string]time.Duration{"1m": time.Minute, "10m": 10 * time.Minute, "1h": time.Hour}

func top(ctx context.Context, c *cli.Command) error {
	span, ok := topSpans[c.String("span")]
	if !ok {
		return usage(c, "-span %s: write 1m, 10m or 1h", c.String("span"))
	}
	s, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	list, err := s.Top(ctx, c.Args().First(), span)
	if err != nil {
		return err
	}
	if rule := c.Args().First(); rule != "" && len(list.Refused)+len(list.Near) == 0 {
		s.warnOfRule(ctx, rule)
	}
	list.Refused, list.Near = append([]operate.TopEntry{}, list.Refused...), append([]operate.TopEntry{}, list.Near...) // no null in JSON
	return show(c, list, func() error {
		_, err := fmt.Fprint(c.Root().Writer, list)
		return err
	})
}

func audit(ctx context.Context, c *cli.Command) error {
	s, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	entries, err := s.Audit(ctx, c.String("before"), c.Int("n"))
	if err != nil {
		return err
	}
	if entries == nil {
		entries = []operate.AuditEntry{}
	}
	return show(c, entries, func() error {
		table := tabwriter.NewWriter(c.Root().Writer, 0, 0, 2, ' ', 0)
		for _, e := range entries {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Time.UTC().Format("2006-01-02 15:04:05"), printable(e.Author), e.Act,
				strings.TrimSpace(printable(e.Rule)+" "+operate.SubjectText(e.Subject)), printable(changeOf(e)), printable(e.Note))
		}
		if len(entries) == 0 {
			fmt.Fprintln(table, "Nothing was done.")
		}
		return table.Flush()
	})
}

// changeOf returns what an act changed.
func changeOf(e operate.AuditEntry) string {
	if e.Before == "" || e.After == "" {
		return e.Before + e.After
	}
	return e.Before + " -> " + e.After
}
