package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core/operate"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Category: aboutRedis, Usage: "examine Redis: what is lost, missing or slow, and what to do",
		Description: "accesslimit doctor -prefix shop",
		UsageText:   "It decides up to 4,096 calls on 32 counters of its own, which it deletes.\nIt writes nothing if Redis is nearly full.",
		Flags:       append(redisFlags(), asJSON()), Action: doctor,
	}
}

func doctor(ctx context.Context, c *cli.Command) error {
	s, err := newSession(c)
	if err != nil {
		return err
	}
	defer s.close()
	found, err := s.Doctor(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(found, func(a, b operate.Finding) int {
		return slices.Index(levels, a.Level) - slices.Index(levels, b.Level)
	})
	if err := show(c, found, func() error { return printFindings(c.Root().Writer, found) }); err != nil {
		return err
	}
	return verdict(found)
}

// levels are the levels of findings, the worst first.
var levels = []string{"problem", "warning", "note", "ok"}

func printFindings(to io.Writer, found []operate.Finding) error {
	counts := make(map[string]int)
	for _, f := range found {
		counts[f.Level]++
		at := ""
		if f.Server != "" {
			at = f.Server + ": "
		}
		fmt.Fprintf(to, "%-8s %-12s %s%s\n", f.Level, f.Code, at, printable(f.Text))
		if f.Do != "" {
			fmt.Fprintf(to, "%21s -> %s\n", "", f.Do)
		}
	}
	_, err := fmt.Fprintf(to, "%s, %s, %s.\n", counted(counts["problem"], "problem"), counted(counts["warning"], "warning"), counted(counts["note"], "note"))
	return err
}

// verdict returns the error of an examination: one that Redis did not answer, or that there are
// problems.
func verdict(found []operate.Finding) error {
	is := func(f operate.Finding) bool { return f.Level == "problem" }
	switch {
	case !slices.ContainsFunc(found, is):
		return nil
	case slices.ContainsFunc(found, func(f operate.Finding) bool { return !is(f) || f.Code != "connection" }):
		return errFound
	default:
		return errNoAnswer
	}
}
