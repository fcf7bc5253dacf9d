package operatorlog

import (
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// maxChanges bounds the changes in one line.
const maxChanges = 20

// RulesReplaced reports that a set of rules has a new version, with what has changed, if that is
// known.
func (l *Log) RulesReplaced(before, version string, rules int, changes []string) {
	attrs := []any{slog.String("version", version), slog.String("before", before), slog.Int("rules", rules)}
	if more := len(changes) - maxChanges; more > 0 {
		changes = append(slices.Clip(changes[:maxChanges]), fmt.Sprintf("and %d more changes", more))
	}
	if len(changes) > 0 {
		attrs = append(attrs, slog.Any("changes", changes))
	}
	l.logger.Info("accesslimit: new rules are in force", attrs...)
}

// RulesRejected warns that a set of rules keeps its version, because a new one is wrong or cannot
// be read. The caller reports each error once.
func (l *Log) RulesRejected(version string, err error) {
	l.logger.Error("accesslimit: new rules cannot be used, so the present ones stay in force",
		slog.String("error", textOf(err)), slog.String("version", version))
}

// RulesCurrent reports that the version in force is the latest one again.
func (l *Log) RulesCurrent(version string) {
	l.logger.Info("accesslimit: the rules in force are the latest ones again", slog.String("version", version))
}

// RulesPolled warns that changes of rules files are noticed late, because there are no events. The
// caller reports it once.
func (l *Log) RulesPolled(why error, every time.Duration) {
	l.logger.Warn("accesslimit: the system does not report all changes of rules files, so they are noticed late",
		slog.String("error", textOf(why)), slog.Duration("every", every))
}
