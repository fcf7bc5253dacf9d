// Command accesslimit checks, compares and publishes limits, and shows and changes what they do on a
// live Redis. Type "accesslimit -h" for its commands. README.md beside this file shows them at work.
//
// The work is done by packages that services can use as well: rulefile and operate. The files here
// parse arguments, and print.
package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/redis/go-redis/v9"
)

func main() { os.Exit(mainCode()) }

// mainCode runs the command, and returns the status to exit with.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	slog.SetDefault(warnings(os.Stderr))
	redis.SetLogger(quiet{}) // the commands report errors themselves
	if err := checkDash(os.Args); err != nil {
		return report(os.Stderr, err)
	}
	return report(os.Stderr, newApp().Run(ctx, os.Args))
}

// checkDash returns an error if arguments follow "-", because the parser of arguments drops them.
func checkDash(args []string) error {
	if at := slices.Index(args, "-"); at >= 0 && at < len(args)-1 {
		return &usageError{"accesslimit", "write - as the last argument: it stands for standard input"}
	}
	return nil
}

// quiet keeps the client of Redis from writing about connections.
type quiet struct{}

// Printf implements the client's logger.
func (quiet) Printf(context.Context, string, ...any) {}
