package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/accesslimit/accesslimit/core"
)

// offline returns the options of a Limiter without Redis, which any rules fit: callers are named by
// arguments, and nobody waits for thresholds.
func offline() core.Options {
	return core.Options{
		Identify:    core.ContextValue("accesslimit: nobody"),
		OnThreshold: func(context.Context, core.Threshold) {},
		Logger:      slog.New(slog.DiscardHandler),
	}
}

// warnings returns a logger that writes warnings and errors as lines for people. A failure of Redis is
// not among them, because the command itself reports it.
func warnings(to io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}
