package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
)

func referenceCommand() *cli.Command {
	return &cli.Command{
		Name: "reference", Category: aboutRedis, Usage: "read the reference of a refusal, without Redis", ArgsUsage: "TEXT",
		Description: "accesslimit reference -of user:alice 07YSH0M5-D1S9AQS2-...",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "keys", OnlyOnce: true, Usage: "a `FILE` with Options.ReferenceKeys, in place of $REFERENCE_KEYS"},
			&cli.StringFlag{Name: "of", OnlyOnce: true, Usage: "the `SUBJECT` that it is perhaps about"},
			asJSON(),
		},
		Action: reference,
	}
}

// readReference is what reference prints as JSON.
type readReference struct {
	Time      time.Time   `json:"time"`
	Rule      string      `json:"rule"`
	Reason    core.Reason `json:"reason"`
	Limit     core.Limit  `json:"limit"`
	Remaining int         `json:"remaining"`
	Wait      float64     `json:"wait"` // in seconds
	About     *bool       `json:"about,omitempty"`
}

func reference(_ context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return usage(c, "give one reference, as a caller quotes it")
	}
	options := offline()
	text := os.Getenv("REFERENCE_KEYS")
	if file := c.String("keys"); file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = string(data)
	}
	keys, err := core.ParseReferenceKeys(text)
	if err != nil || len(keys) == 0 {
		return usage(c, "which keys? Set $REFERENCE_KEYS as the services do, or name a file with them: -keys FILE")
	}
	options.ReferenceKeys = keys
	limiter, err := core.New(options)
	if err != nil {
		return err
	}
	defer limiter.Close()
	return explainReference(c, operate.New(limiter))
}

func explainReference(c *cli.Command, operator *operate.Operator) error {
	found, err := operator.ExplainReference(c.Args().First())
	if err != nil {
		return err
	}
	read := readReference{found.Time, found.Rule, found.Reason, found.Limit, found.Remaining, found.Wait.Seconds(), nil}
	subject, err := operator.Subject(c.String("of"))
	if err != nil {
		return usage(c, "-of: %s", why(err))
	}
	if subject != "" {
		about := found.About(subject)
		read.About = &about
	}
	return show(c, read, func() error {
		fmt.Fprintln(c.Root().Writer, found)
		if read.About != nil {
			fmt.Fprintf(c.Root().Writer, "about %s: %v\n", operate.SubjectText(subject), map[bool]string{true: "yes", false: "no"}[*read.About])
		}
		return nil
	})
}
