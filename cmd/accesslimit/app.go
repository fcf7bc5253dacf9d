package main

import (
	"context"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v3"
)

// newApp returns the command with all its commands.
func newApp() *cli.Command {
	cli.HelpPrinter = printHelp
	app := &cli.Command{
		Name: "accesslimit", Usage: "check, compare and operate the limits of Go services", Version: buildVersion(),
		HideHelpCommand: true, EnableShellCompletion: true,
		ExitErrHandler: func(context.Context, *cli.Command, error) {}, // report prints errors
		Action:         noCommand,
		Commands: []*cli.Command{
			checkCommand(), diffCommand(), explainCommand(), replayCommand(),
			publishCommand(), rollbackCommand(), historyCommand(),
			inspectCommand(), topCommand(), bansCommand(), banCommand(), unbanCommand(), resetCommand(), overrideCommand(), marksCommand(),
			auditCommand(), referenceCommand(), doctorCommand(),
		},
	}
	for _, c := range app.Commands {
		c.OnUsageError, c.ShellComplete, c.HideHelpCommand, c.Before = wrongUsage, completeFlags, true, refuseExtra
	}
	app.OnUsageError = wrongUsage
	return app
}

// The groups of commands in the help.
const (
	aboutFiles    = "Files with rules"
	aboutDocument = "The document of a fleet, on a live Redis"
	aboutRedis    = "A live Redis, named by $REDIS_URL or -redis FILE"
)

// buildVersion returns the version of the module that the program was built from.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

// noCommand is run if the first argument is no command.
func noCommand(_ context.Context, app *cli.Command) error {
	name := app.Args().First()
	if name == "help" {
		name = app.Args().Get(1)
	}
	if name == "" {
		return cli.ShowRootCommandHelp(app)
	}
	if c := app.Command(name); c != nil { // help check
		printHelp(app.Writer, "", c)
		return nil
	}
	return usage(app, "there is no command %q (did you mean %q?)", name, cli.SuggestCommand(app.Commands, name))
}

// names splits a list of names: "api,login".
func names(list string) (all []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	return all
}
