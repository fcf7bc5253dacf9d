package main

import (
	"context"
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
