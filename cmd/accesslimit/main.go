// Command accesslimit checks, compares and publishes limits, and shows and changes what they do on a
// live Redis. Type "accesslimit -h" for its commands. README.md beside this file shows them at work.
//
// The work is done by packages that services can use as well: rulefile and operate. The files here
// parse arguments, and print.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

// mainCode runs the command, and returns the status to exit with.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return report(os.Stderr, newApp().Run(ctx, os.Args))
}
