package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/accesslimit/accesslimit/core"
)

// The statuses to exit with.
const (
	exitDone     = 0
	exitFound    = 1 // a mistake was found, or something was not done
	exitUsage    = 2 // the arguments are wrong
	exitNoAnswer = 3 // Redis did not answer
)

// errFound is the error of a command that has printed what it found.
var errFound = errors.New("something was found")

// errNoAnswer is the error of a command that has printed that Redis did not answer.
var errNoAnswer = errors.New("no answer from Redis")

// usageError says what is wrong with the arguments of a command.
type usageError struct {
	command string
	text    string
}

func (e *usageError) Error() string { return e.text }

// usage returns a usageError of a command.
func usage(c *cli.Command, format string, args ...any) error {
	return &usageError{c.FullName(), fmt.Sprintf(format, args...)}
}

var invalidValue = regexp.MustCompile(`(?s)^invalid value "(.*)" for flag -([a-z]+): (.*)`)

// wrongUsage implements cli.OnUsageErrorFunc. It says which flag was probably meant, or what a flag takes.
func wrongUsage(_ context.Context, c *cli.Command, err error, _ bool) error {
	if invalid := invalidValue.FindStringSubmatch(err.Error()); invalid != nil {
		if strings.HasPrefix(invalid[3], "can't duplicate") { // in the words of the parser
			return usage(c, "-%s is there twice", invalid[2])
		}
		return usage(c, "\"%s\" is no value for -%s: write -%[2]s%s", invalid[1], invalid[2], placeholder(c, invalid[2]))
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return usage(c, "%v", err)
	}
	meant := ""
	if like := strings.TrimLeft(cli.SuggestFlag(c.Flags, name, true), "-"); like != "" {
		meant = fmt.Sprintf(" (did you mean -%s?)", like)
	}
	return usage(c, "there is no flag -%s%s", name, meant)
}

// refuseExtra implements cli.BeforeFunc. It returns an error about an argument that a command would
// ignore. Commands that require arguments count them themselves.
func refuseExtra(ctx context.Context, c *cli.Command) (context.Context, error) {
	most, ok := map[string]int{"": 0, "[RULE]": 1}[c.ArgsUsage]
	if ok && c.Args().Len() > most {
		return ctx, usage(c, "%q is one argument too many", c.Args().Get(most))
	}
	return ctx, nil
}

// placeholder returns what stands for the value of a flag in its help, behind a space, or "" if it takes none.
func placeholder(c *cli.Command, flag string) string {
	for _, f := range c.Flags {
		if f.Names()[0] == flag {
			value, _ := valueOf(f)
			return value
		}
	}
	return ""
}

// report prints an error, and returns the status to exit with.
func report(to io.Writer, err error) int {
	var wrong *usageError
	var refused *core.RuleError
	var failed *core.StoreError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errFound):
		return exitFound
	case errors.Is(err, errNoAnswer):
		return exitNoAnswer
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(to, "accesslimit: interrupted")
		return exitFound
	case errors.As(err, &wrong):
		fmt.Fprintf(to, "accesslimit: %v\nType \"%s -h\" for help.\n", err, wrong.command)
		return exitUsage
	case errors.As(err, &failed), errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(to, "accesslimit: %s\n%s\n", strings.TrimPrefix(err.Error(), "core: "), adviceOn(err))
		return exitNoAnswer
	case errors.As(err, &refused) && refused.Rule == "": // the value of a flag
		fmt.Fprintf(to, "accesslimit: %s\n", why(err))
		return exitUsage
	default:
		fmt.Fprintf(to, "accesslimit: %s\n", why(err))
		return exitFound
	}
}

// why returns an error for people at a shell: one about an argument of core without the words of Go.
func why(err error) string {
	var wrong *core.RuleError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	if wrong.Rule == "" {
		return fmt.Sprintf("%s %v %s", strings.TrimPrefix(strings.ToLower(wrong.Field), "options."), wrong.Value, wrong.Why)
	}
	return fmt.Sprintf("rule %q: %s %s", wrong.Rule, strings.ToLower(wrong.Field), wrong.Why)
}
