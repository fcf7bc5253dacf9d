package operatorlog

import (
	"log/slog"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// StoreFailed reports that the store did not answer a call, or answered with an error, and what the
// call's policy was.
func (l *Log) StoreFailed(rule, policy string, err error) {
	class, rule, text := failure.ClassOf(err), strings.Clone(rule), textOf(err)
	l.storeFailures.log(string(class)+policy, func(times int) {
		level, attrs := describe(class, text)
		attrs = append(attrs, slog.String("latest_rule", rule), slog.String("policy", policy))
		message := "accesslimit: the store does not answer"
		if class.Answered() {
			message = "accesslimit: the store answers with an error"
		}
		l.log(level, message, attrs, "calls", times)
	})
}

// GiveBackFailed reports that slots or permits could not be given back after a call.
func (l *Log) GiveBackFailed(err error) {
	l.failedAfterwards(&l.giveBackErrors, "accesslimit: slots or permits could not be given back", err)
}

// RenewalFailed reports that the slot of a call in flight could not be renewed.
func (l *Log) RenewalFailed(err error) {
	l.failedAfterwards(&l.renewalErrors, "accesslimit: the slot of a call in flight could not be renewed", err)
}

// AuditFailed reports that an operator's act could not be written into the audit stream.
func (l *Log) AuditFailed(err error) {
	l.failedAfterwards(&l.auditErrors, "accesslimit: an entry could not be written into the audit stream", err)
}

// AuditOff reports, once, that a right is missing for the audit stream.
func (l *Log) AuditOff(err error) {
	if l.missingAudits.first("") {
		l.logger.Warn("accesslimit: the audit stream is off, because the Redis user lacks a right. Everything else works as before",
			slog.String("error", textOf(err)), changeOfRights(err, "give the Redis user the right +xadd, as "+failure.RightsPage+" lists it"))
	}
}

// AuditUnread reports, once, that a right is missing to read the audit stream.
func (l *Log) AuditUnread(err error) {
	if l.unreadAudits.first("") {
		l.logger.Warn("accesslimit: the audit stream cannot be read, because the Redis user lacks a right. Everything else works as before",
			slog.String("error", textOf(err)), changeOfRights(err, "give the Redis user the right +xrevrange, as "+failure.RightsPage+" lists it"))
	}
}

// TopFailed reports that something is missing in the lists of refused subjects.
func (l *Log) TopFailed(err error) {
	l.failedAfterwards(&l.topErrors, "accesslimit: the lists of the most refused subjects are not complete", err)
}

// TopOff reports, once, that a right is missing for the lists of refused subjects.
func (l *Log) TopOff(err error) {
	if l.missingTops.first("") {
		l.logger.Warn("accesslimit: the lists of the most refused subjects are off, because the Redis user lacks a right. Everything else works as before",
			slog.String("error", textOf(err)), slog.String("change", failure.RightsForKeys))
	}
}

// MarksOff reports, once, that a right is missing to read the marks of subjects.
func (l *Log) MarksOff(err error) {
	if l.missingMarks.first("") {
		l.logger.Warn("accesslimit: bans, blocks and overrides are not read, because the Redis user lacks a right: those of other processes may not hold here. Everything else works as before",
			slog.String("error", textOf(err)), changeOfRights(err, failure.RightsForCommands))
	}
}

// MarksFailed reports that what the keys of marks hold cannot be read.
func (l *Log) MarksFailed(err error) {
	class, text := failure.ClassOf(err), textOf(err)
	l.markErrors.log("", func(times int) {
		level, attrs := describe(class, text)
		l.log(level, "accesslimit: bans, blocks and overrides cannot be read: only those hold here that this process knows", attrs, "times", times)
	})
}

// MarkUnreadable reports a ban, a block or an override that this process cannot read.
func (l *Log) MarkUnreadable(err error) {
	text := textOf(err)
	l.unreadMarks.log("", func(times int) {
		l.logger.Error("accesslimit: a ban, a block or an override cannot be read, and is ignored here: set it again or remove it",
			slog.String("error", text), slog.Int("times", times))
	})
}

// MarksWrittenBack reports that this process has written back marks that Redis had lost.
func (l *Log) MarksWrittenBack(n int) {
	l.logger.Warn("accesslimit: Redis had lost bans, blocks or overrides, and this process has written them back", slog.Int("marks", n))
}

// PausesFailed reports that pauses of calls that go out could not be listed.
func (l *Log) PausesFailed(err error) {
	l.failedAfterwards(&l.pauseErrors, "accesslimit: pauses could not be listed, which does not change what they stop", err)
}

// PausesOff reports, once, that a right is missing for the list of pauses.
func (l *Log) PausesOff(err error) {
	if l.missingPauses.first("") {
		l.logger.Warn("accesslimit: the list of pauses is off, because the Redis user lacks a right. Everything else works as before",
			slog.String("error", textOf(err)), changeOfRights(err, failure.RightsForCommands))
	}
}

// failedAfterwards reports a failure of the store in work that follows a call.
func (l *Log) failedAfterwards(t *throttle, message string, err error) {
	class, text := failure.ClassOf(err), textOf(err)
	t.log(string(class), func(times int) {
		level, attrs := describe(class, text)
		l.log(level, message, attrs, "calls", times)
	})
}

// LossUnrecorded reports that other processes, doctor and the operators' page do not learn of a
// loss.
func (l *Log) LossUnrecorded(err error) {
	l.failedAfterwards(&l.lossErrors, "accesslimit: a loss of data could not be recorded, so only logs report it", err)
}

// Unreachable implements redisstore.Listener.
func (l *Log) Unreachable(addr string, err error) {
	text := textOf(err)
	l.connections.log(addr, func(times int) {
		level, attrs := describe(failure.Unreachable, text)
		l.log(level, "accesslimit: no connection to Redis can be set up", append(attrs, slog.String("addr", addr)), "times", times)
	})
}

// TooOld implements redisstore.Listener.
func (l *Log) TooOld(addr, version string) {
	l.versions.log(addr, func(times int) {
		l.logger.Error("accesslimit: this Redis is too old to count some limits, so their rules' OnStoreError applies",
			slog.String("addr", addr), slog.String("version", version), slog.String("change", "run Redis 6.2 or later, or Valkey"), slog.Int("times", times))
	})
}

// BreakerOpened implements redisstore.Listener.
func (l *Log) BreakerOpened(addr string) {
	l.breakers.log("open "+addr, func(times int) {
		l.logger.Warn("accesslimit: Redis does not answer: it is tried once in a while, and all other calls get their rule's policy at once",
			slog.String("addr", addr), slog.Int("times", times))
	})
}

// BreakerClosed implements redisstore.Listener.
func (l *Log) BreakerClosed(addr string, after time.Duration) {
	l.breakers.log("closed "+addr, func(times int) {
		l.logger.Info("accesslimit: Redis answers again", slog.String("addr", addr), slog.Duration("after", after), slog.Int("times", times))
	})
}

// Lost reports that a server has lost data: what, and how.
func (l *Log) Lost(addr, lost, how string) {
	l.losses.log(addr, func(times int) {
		l.logger.Error("accesslimit: Redis has lost data: counters, the audit, and the document with the rules if it was there",
			slog.String("lost", lost), slog.String("how", how), slog.String("addr", addr),
			slog.String("change", "publish the document again; counters start afresh, and running processes write bans, blocks and overrides back"), slog.Int("times", times))
	})
}

// Evicts implements redisstore.Listener.
func (l *Log) Evicts(addr, policy string) {
	l.evictions.log(addr, func(times int) {
		l.logger.Warn("accesslimit: Redis evicts keys when its memory is full, also those of counters in use: their callers start afresh",
			slog.String("addr", addr), slog.String("maxmemory-policy", policy), slog.String("change", "set maxmemory-policy noeviction"))
	})
}

// OneKeyPerScript implements redisstore.Listener.
func (l *Log) OneKeyPerScript(addr string, why error) {
	if l.oneKeyScripts.first(addr) {
		l.logger.Info("accesslimit: different subjects cannot share a script on this server. Decisions are correct, but slower",
			slog.String("addr", addr), slog.String("why", textOf(why)),
			slog.String("change", "if a right is missing, grant it ("+failure.RightsPage+" lists them); nothing if this is a proxy or a cluster"))
	}
}

// TagsIgnored implements redisstore.Listener.
func (l *Log) TagsIgnored(addr string) {
	l.ignoredTags.log(addr, func(times int) {
		l.logger.Error("accesslimit: a proxy keeps the counters of one subject on several servers, so calls with several limits are counted wrongly",
			slog.String("addr", addr), slog.String("change", failure.TagsForProxy), slog.Int("times", times))
	})
}
