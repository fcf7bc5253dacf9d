package operatorlog

import (
	"log/slog"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// describe returns the level at which a failure of the store is logged, and the attributes that
// describe it: the error, its class, and what to change.
func describe(class failure.Class, text string) (level slog.Level, attrs []any) {
	level, attrs = slog.LevelWarn, []any{slog.String("error", text), slog.String("class", string(class))}
	change, lasts := failure.Advice(class, text)
	if lasts {
		level = slog.LevelError
	}
	if change != "" {
		attrs = append(attrs, slog.String("change", change))
	}
	return level, attrs
}

// changeOfRights returns what to change about a missing right: the keys, if the error is about
// keys, and otherwise rights.
func changeOfRights(err error, rights string) slog.Attr {
	if change, _ := failure.Advice(failure.Refused, err.Error()); change == failure.RightsForKeys {
		rights = change
	}
	return slog.String("change", rights)
}
