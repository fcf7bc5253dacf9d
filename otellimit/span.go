package otellimit

import (
	"context"
	"math"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/accesslimit/accesslimit/core"
)

// The attributes that spans and metrics share.
const (
	ruleKey   = attribute.Key("accesslimit.rule")
	reasonKey = attribute.Key("accesslimit.reason")
	sourceKey = attribute.Key("accesslimit.source")
)

// SetAttributes sets attributes of the span in the context that describe a decision. It is for
// [core.Options.OnDecision], directly or called from your own function. It starts no span, because
// most decisions take microseconds.
//
//	accesslimit.rule         the name of the rule or the handle
//	accesslimit.reason       why the call is allowed or refused, as core.Reason
//	accesslimit.source       what answered, as core.Source
//	accesslimit.allowed      whether the call may go on
//	accesslimit.remaining    permits left; left out if no counter answered
//	accesslimit.retry_after  the wait in seconds; only for a refused call that may pass after it
//
// A call that goes out (see package outgoing) has attributes of its own, beside those of the call for
// which it is made:
//
//	accesslimit.outgoing.rule         the name of the rule
//	accesslimit.outgoing.waited       the wait for the turn in seconds
//	accesslimit.outgoing.refused_by   "client" if this service did not send it, "server" if the server
//	                                  refused it because of a limit; left out if it was sent and not refused
//	accesslimit.outgoing.reason       why this service did not send it, as core.Reason
//	accesslimit.outgoing.retry_after  the wait in seconds after a refusal, if it is known
//
// If several middlewares decide a call, the attributes are those of the last one. A rule in DryRun
// that would have refused the call only sets accesslimit.dry_run.rule to its name, if the span has not
// ended by then.
func SetAttributes(ctx context.Context, e core.Event) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if e.Outgoing {
		span.SetAttributes(ofCallThatGoesOut(&e)...)
		return
	}
	d := &e.Decision
	rule := strings.ToValidUTF8(d.Rule, "\uFFFD") // callers can make up gRPC routes, and exporters reject other texts
	if e.DryRun {
		if d.Reason == core.DryRunExceeded {
			span.SetAttributes(attribute.String("accesslimit.dry_run.rule", rule))
		}
		return
	}
	attributes := append(make([]attribute.KeyValue, 0, 6), ruleKey.String(rule), reasonKey.String(string(d.Reason)),
		sourceKey.String(string(d.Source)), attribute.Bool("accesslimit.allowed", d.Allowed))
	if d.Source != core.FromNobody && d.Remaining != math.MaxInt {
		attributes = append(attributes, attribute.Int("accesslimit.remaining", d.Remaining))
	}
	if d.RetryAfter > 0 {
		attributes = append(attributes, attribute.Float64("accesslimit.retry_after", d.RetryAfter.Seconds()))
	}
	span.SetAttributes(attributes...)
}

// ofCallThatGoesOut returns the attributes of a call that goes out.
func ofCallThatGoesOut(e *core.Event) []attribute.KeyValue {
	d := &e.Decision
	attributes := append(make([]attribute.KeyValue, 0, 4), attribute.String("accesslimit.outgoing.rule", d.Rule))
	switch {
	case e.ByServer:
		attributes = append(attributes, attribute.String("accesslimit.outgoing.refused_by", "server"))
	case d.Allowed:
		return append(attributes, attribute.Float64("accesslimit.outgoing.waited", e.Waited.Seconds()))
	default:
		attributes = append(attributes, attribute.Float64("accesslimit.outgoing.waited", e.Waited.Seconds()),
			attribute.String("accesslimit.outgoing.refused_by", "client"), attribute.String("accesslimit.outgoing.reason", string(d.Reason)))
	}
	if d.RetryAfter > 0 {
		attributes = append(attributes, attribute.Float64("accesslimit.outgoing.retry_after", d.RetryAfter.Seconds()))
	}
	return attributes
}
