package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core/rulefile"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name: "diff", Category: aboutFiles, Usage: "show what changes for callers, and which counters start empty", ArgsUsage: "OLD NEW",
		Description: "accesslimit diff deployed.yaml limits.yaml",
		Flags:       []cli.Flag{asJSON()},
		Action:      diff,
	}
}

// change is a rulefile.Change in JSON.
type change struct {
	Rule       string `json:"rule"`
	Field      string `json:"field,omitempty"`
	Before     string `json:"before,omitempty"`
	After      string `json:"after,omitempty"`
	StartEmpty bool   `json:"start_empty"`
	Why        string `json:"why,omitempty"`
}

func diff(_ context.Context, c *cli.Command) error {
	if c.Args().Len() != 2 {
		return usage(c, "name two files or folders: the old rules, and the new ones")
	}
	before, err := checkRules(c, rulefile.Service{}, c.Args().Get(0))
	if err != nil {
		return printMistakes(c, err)
	}
	after, err := checkRules(c, rulefile.Service{}, c.Args().Get(1))
	if err != nil {
		return printMistakes(c, err)
	}
	return printChanges(c, before.Diff(after))
}

// readRules reads correct files, or prints their mistakes.
func readRules(c *cli.Command, paths ...string) (*rulefile.Checked, error) {
	rules, err := rulefile.Check(rulefile.Service{}, paths...)
	return rules, printMistakes(c, err)
}

// printMistakes prints what is wrong with rules, and returns errFound. It returns nil for nil.
func printMistakes(c *cli.Command, err error) error {
	if err == nil {
		return nil
	}
	for _, m := range mistakes(err) {
		fmt.Fprintln(c.Root().ErrWriter, m.text)
	}
	return errFound
}

func printChanges(c *cli.Command, changes []rulefile.Change) error {
	result := []change{}
	for _, one := range changes {
		result = append(result, change(one))
	}
	return show(c, result, func() error {
		for _, one := range changes {
			fmt.Fprintln(c.Root().Writer, printable(one.String()))
		}
		if len(changes) == 0 {
			fmt.Fprintln(c.Root().Writer, "Nothing changes.")
		}
		return nil
	})
}
