package operatorlog

import (
	"log/slog"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// NoticesDropped warns that a threshold is not reported, because too many reports wait.
func (l *Log) NoticesDropped() {
	l.droppedNotices.log("", func(times int) {
		l.logger.Warn("accesslimit: thresholds are not reported, because too many reports wait",
			slog.String("change", "let OnThreshold return quickly: reports wait for each other"), slog.Int("reports", times))
	})
}

// NoticeFailed reports that a threshold is not reported, because the store cannot be asked whether
// another process has done so.
func (l *Log) NoticeFailed(err error) {
	l.failedAfterwards(&l.noticeErrors, "accesslimit: a threshold is not reported, because it is not known whether another process has reported it", err)
}

// NoticesOff reports, once, that a right is missing for the reports of thresholds.
func (l *Log) NoticesOff(err error) {
	if l.missingNotices.first("") {
		l.logger.Warn("accesslimit: thresholds are not reported, because the Redis user lacks a right. Everything else works as before",
			slog.String("error", textOf(err)), changeOfRights(err, "give the Redis user the rights +get +set, as "+failure.RightsPage+" lists them"))
	}
}

// OnThresholdPanicked reports that the service's function for thresholds panicked.
func (l *Log) OnThresholdPanicked(rule, value string, stack []byte) {
	rule = strings.Clone(rule)
	l.thresholdPanics.log(rule, func(times int) {
		l.logger.Error("accesslimit: OnThreshold panicked", slog.String("panic", value), slog.String("rule", rule),
			slog.String("stack", string(stack)), slog.Int("reports", times))
	})
}
