package operatorlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/ruleorigin"
)

// maxChanges bounds the changes in one line.
const maxChanges = 20

// RulesReplaced reports that a set of rules has a new version, and what has changed if that is
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

// ruleProblems has the line of each problem that keeps a set from using the latest rules. %s stands
// for the rules that it uses instead.
var ruleProblems = map[ruleorigin.Problem]struct {
	level           slog.Level
	message, change string
}{
	ruleorigin.Wrong:  {slog.LevelError, "new rules cannot be used, so %s in force", ""},
	ruleorigin.Unread: {slog.LevelWarn, "the rules cannot be read, so %s in force, and new ones are not noticed", ""},
	ruleorigin.Lost: {slog.LevelError, "Redis has lost the rules, so %s in force, but processes that start now have others",
		"publish the document again"},
	ruleorigin.Missing: {slog.LevelWarn, "there is no document with rules, so %s in force", "publish one by Document.Write"},
}

// RulesOutdated reports why a set of rules does not use the latest version. The caller reports each
// error once.
func (l *Log) RulesOutdated(problem ruleorigin.Problem, version string, fallback bool, err error) {
	is, instead := ruleProblems[problem], "the present ones stay"
	if fallback {
		instead = "the fallback is"
	}
	level, attrs := is.level, []any{slog.String("error", textOf(err))}
	if failed := (*failure.Error)(nil); problem == ruleorigin.Unread && errors.As(err, &failed) {
		level, attrs = describe(failed.Class, textOf(err))
	}
	if is.change != "" {
		attrs = append(attrs, slog.String("change", is.change))
	}
	l.logger.Log(context.Background(), level, "accesslimit: "+fmt.Sprintf(is.message, instead), append(attrs, slog.String("version", version))...)
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
