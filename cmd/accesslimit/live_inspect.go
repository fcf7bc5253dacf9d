package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"
)

func inspectCommand() *cli.Command {
	return &cli.Command{
		Name: "inspect", Category: aboutRedis, Usage: "show what a subject has used, its bans and overrides", ArgsUsage: "SUBJECT",
		Description: "accesslimit inspect -rules limits.yaml user:alice\naccesslimit inspect -rules limits.yaml header:X-Tenant=acme",
		Flags:       liveFlags(), Action: inspect,
	}
}

func inspect(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return usage(c, "name one subject, such as user:alice, 203.0.113.7 or header:X-Tenant=acme")
	}
	s, err := openKnownRules(ctx, c)
	if err != nil {
		return err
	}
	defer s.close()
	subject, err := s.Subject(c.Args().First())
	if err != nil {
		return usage(c, "%s", why(err))
	}
	report, err := s.Inspect(ctx, subject)
	if err != nil {
		return err
	}
	return show(c, report, func() error {
		fmt.Fprint(c.Root().Writer, report)
		if hint := s.SubjectHint(subject); hint != "" {
			fmt.Fprintln(c.Root().ErrWriter, hint)
		}
		return nil
	})
}
