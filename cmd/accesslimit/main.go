// Command accesslimit checks, compares and publishes limits, and shows and changes what they do on a
// live Redis. Type "accesslimit -h" for its commands. README.md beside this file shows them at work.
//
// The work is done by packages that services can use as well: rulefile and operate. The files here
// parse arguments, and print.
package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() { os.Exit(mainCode()) }

// mainCode runs the command, and returns the status to exit with.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	people := terminal{os.Stderr}
	slog.SetDefault(warnings(people))
	redis.SetLogger(quiet{}) // the commands report errors themselves
	if err := checkDash(os.Args); err != nil {
		return report(people, err)
	}
	context.AfterFunc(ctx, stop) // so that a second interrupt ends the process
	app, out := newApp(), &output{to: os.Stdout}
	app.Writer, app.ErrWriter = out, people
	err := untilInterrupted(ctx, func() error { return app.Run(ctx, os.Args) })
	return report(people, cmp.Or(out.failed(), err))
}

// untilInterrupted runs the command. After an interrupt, it leaves it a second to end what it does, but
// no more: a read of standard input, or from a Redis that hangs, does not notice.
func untilInterrupted(ctx context.Context, run func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- run() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Second):
		return ctx.Err()
	}
}

// checkDash returns an error if arguments follow "-", because the parser of arguments drops them.
func checkDash(args []string) error {
	if at := slices.Index(args, "-"); at >= 0 && at < len(args)-1 {
		return &usageError{"accesslimit", "write - as the last argument, or /dev/stdin instead: both stand for standard input"}
	}
	return nil
}

// quiet keeps the client of Redis from writing about connections.
type quiet struct{}

// Printf implements the client's logger.
func (quiet) Printf(context.Context, string, ...any) {}
