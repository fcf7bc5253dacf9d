package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// warnings returns a logger that writes warnings and errors as lines for people.
func warnings(to io.Writer) *slog.Logger { return slog.New(&lines{to}) }

// lines is a slog.Handler. It leaves out what a limiter logs about calls that Redis did not answer,
// because each command reports that itself.
type lines struct{ to io.Writer }

// Enabled implements slog.Handler.
func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	aboutCalls := false
	text := "accesslimit: " + strings.TrimPrefix(r.Message, "accesslimit: ")
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "policy": // of calls
			aboutCalls = true
		case "error", "change":
			text += fmt.Sprintf("; %s: %v", a.Key, a.Value)
		}
		return true
	})
	if aboutCalls {
		return nil
	}
	_, err := fmt.Fprintln(l.to, printable(text))
	return err
}

// WithAttrs implements slog.Handler. A limiter adds none.
func (l *lines) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *lines) WithGroup(string) slog.Handler { return l }
