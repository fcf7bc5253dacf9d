package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"
)

// printHelp prints the help of a command, which fits on a screen. It is a cli.HelpPrinterFunc. The
// Description of a command is an example of it, and its UsageText says what else to know.
func printHelp(to io.Writer, _ string, data any) {
	c := data.(*cli.Command)
	fmt.Fprintf(to, "%s: %s\n", c.FullName(), c.Usage)
	if len(c.Commands) > 0 {
		printCommands(to, c)
		fmt.Fprintf(to, "Type \"%s COMMAND -h\" for the flags of a command, and an example.\n", c.FullName())
		return
	}
	fmt.Fprintln(to, "\n"+strings.TrimSpace("Usage: "+c.FullName()+" "+c.ArgsUsage))
	if c.UsageText != "" {
		fmt.Fprintf(to, "\n%s\n", c.UsageText)
	}
	printFlags(to, c)
	if c.Description != "" {
		fmt.Fprintf(to, "\nExample:\n    %s\n", strings.ReplaceAll(c.Description, "\n", "\n    "))
	}
}

// printCommands prints the commands of a command by their groups.
func printCommands(to io.Writer, c *cli.Command) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	defer table.Flush()
	group := ""
	for _, sub := range c.VisibleCommands() {
		if sub.Category != group {
			group = sub.Category
			fmt.Fprintf(table, "%s:\n", group)
		}
		fmt.Fprintf(table, "  %s\t%s\n", sub.Name, sub.Usage)
	}
}

// printFlags prints the flags of a command, those that it requires first.
func printFlags(to io.Writer, c *cli.Command) {
	flags := slices.DeleteFunc(slices.Clone(c.Flags), func(f cli.Flag) bool { return f.Names()[0] == "help" || f.Names()[0] == "version" })
	if len(flags) == 0 {
		return
	}
	fmt.Fprintln(to, "\nFlags:")
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	defer table.Flush()
	for _, f := range flags {
		value, usage := valueOf(f)
		fmt.Fprintf(table, "  -%s%s\t%s\n", f.Names()[0], value, usage)
	}
}

// valueOf returns the word for the value of a flag, behind a space, or "" if it takes none, and its usage.
func valueOf(f cli.Flag) (value, usage string) {
	usage = f.(cli.DocGenerationFlag).GetUsage()
	before, after, ok := strings.Cut(usage, "`")
	if !ok {
		return "", usage
	}
	word, rest, _ := strings.Cut(after, "`")
	return " " + word, before + word + rest
}
