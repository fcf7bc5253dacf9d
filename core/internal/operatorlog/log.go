// Package operatorlog logs what an operator should know: failures of the store and what to change,
// failures of a rule's functions, and mistakes in the setup of a service.
package operatorlog

import (
	"context"
	"log/slog"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// Log writes each message at most once a minute for each rule, server or kind of error, with the
// number of times that it applied since it was last written. Messages about the setup of a service
// are written once. A Log is safe for concurrent use, and has the methods of redisstore.Listener
// except Lost.
//
// A message may be written a minute after its cause. Rules' names and the texts of errors may be
// lent by a framework for one call only, so the methods copy them.
type Log struct {
	logger *slog.Logger

	// By kind of error or rule.
	storeFailures, negativeCosts, identifyErrors, keyErrors, planErrors, giveBackErrors, renewalErrors, auditErrors, markErrors, unreadMarks, ignoredMarks, pauseErrors, topErrors, lossErrors throttle
	noticeErrors, thresholdPanics, droppedNotices                                                                                                                                              throttle
	// By the mistake.
	untrustedAuthRequests, unreadableAuthRequests throttle
	// By server.
	breakers, connections, versions, evictions, losses, ignoredTags throttle
	// By text.
	panics throttle

	untrustedProxies, missingAddresses, missingIdentify, wrongIdentities, misspelledParameters, limitingNobody, unknownRoutes, doubleCharges, oneKeyScripts, missingAudits, unreadAudits, missingMarks, missingPauses, missingTops, missingNotices once
}

// New returns a Log that writes to a logger.
func New(logger *slog.Logger) *Log { return &Log{logger: logger} }

// Close writes the messages that wait for the end of their minute.
func (l *Log) Close() {
	for _, t := range [...]*throttle{
		&l.storeFailures, &l.negativeCosts, &l.identifyErrors, &l.keyErrors, &l.planErrors, &l.giveBackErrors, &l.renewalErrors, &l.auditErrors, &l.markErrors, &l.unreadMarks, &l.ignoredMarks, &l.pauseErrors, &l.topErrors, &l.lossErrors,
		&l.noticeErrors, &l.thresholdPanics, &l.droppedNotices, &l.untrustedAuthRequests, &l.unreadableAuthRequests,
		&l.breakers, &l.connections, &l.versions, &l.evictions, &l.losses, &l.ignoredTags, &l.panics,
	} {
		t.close()
	}
}

// NegativeCost warns that a rule's Cost or Estimate returned a negative number.
func (l *Log) NegativeCost(rule string, cost int) {
	rule = strings.Clone(rule)
	l.negativeCosts.log(rule, func(times int) {
		l.logger.Warn("accesslimit: a rule's cost is negative, and counts as 1",
			slog.String("rule", rule), slog.Int("cost", cost), slog.Int("calls", times))
	})
}

// IdentifyFailed warns that a rule does not know whom to count, because Identify failed. then says
// what happened to the call.
func (l *Log) IdentifyFailed(rule, then string, err error) {
	l.ruleFailed(&l.identifyErrors, "accesslimit: a caller could not be identified, and "+then, rule, err)
}

// KeyFailed is IdentifyFailed for a rule whose own Key failed.
func (l *Log) KeyFailed(rule, then string, err error) {
	l.ruleFailed(&l.keyErrors, "accesslimit: a rule's Key failed, and the caller "+then, rule, err)
}

// PlanFailed warns that a caller's limit could not be determined.
func (l *Log) PlanFailed(rule string, err error) {
	l.ruleFailed(&l.planErrors, "accesslimit: a caller's plan could not be found, so the rule's own limit applies", rule, err)
}

// MarkIgnored warns that limits which an operator has set for a subject do not suit a rule or a handle.
func (l *Log) MarkIgnored(name, limits string) {
	limits = strings.Clone(limits)
	l.ignoredMarks.log(name, func(times int) {
		l.logger.Warn("accesslimit: the limits of an override do not suit the rule or the handle, so its own limits apply: set others or remove it",
			slog.String("rule", name), slog.String("limits", limits), slog.Int("calls", times))
	})
}

// Panicked reports a panic that was caught, with its stack. It never panics itself, even if the
// log's handler does.
func (l *Log) Panicked(err error) {
	text, stack := textOf(err), panics.StackOf(err)
	panics.Guard(func() {
		l.panics.log(text, func(times int) {
			l.logger.Error("accesslimit: a panic was caught, and the work that panicked counts as failed",
				slog.String("error", text), slog.String("stack", stack), slog.Int("times", times))
		})
	}, dropPanic)()
}

func (l *Log) ruleFailed(t *throttle, message, rule string, err error) {
	rule, text := strings.Clone(rule), textOf(err)
	t.log(rule, func(times int) {
		l.logger.Warn(message, slog.String("error", text), slog.String("rule", rule), slog.Int("calls", times))
	})
}

// textOf returns a copy of an error's text, which is bounded.
func textOf(err error) string { return strings.Clone(failure.Text(err)) }

// log writes a message with the number of times that it applies to.
func (l *Log) log(level slog.Level, message string, attrs []any, unit string, times int) {
	l.logger.Log(context.Background(), level, message, append(attrs, slog.Int(unit, times))...)
}
