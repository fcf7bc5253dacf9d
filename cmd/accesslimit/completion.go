package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// completeFlags implements cli.ShellCompleteFunc for commands. It prints the flags that begin with the
// last word, with as many dashes as that has, for the scripts of "accesslimit completion". Of anything
// else, shells complete names of files.
func completeFlags(_ context.Context, c *cli.Command) {
	words := c.Args().Slice()
	if len(words) == 0 {
		return
	}
	last := words[len(words)-1]
	dashes := last[:len(last)-len(strings.TrimLeft(last, "-"))]
	for _, f := range c.Flags {
		if flag := dashes + f.Names()[0]; dashes != "" && strings.HasPrefix(flag, last) {
			usage := strings.ReplaceAll(f.(cli.DocGenerationFlag).GetUsage(), "`", "")
			fmt.Fprintf(c.Root().Writer, "%s:%s\n", flag, usage)
		}
	}
}
