package core

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/problem"
	"github.com/accesslimit/accesslimit/core/internal/reference"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

// Refusal is the reply to a caller who is refused. An adapter sends it unchanged.
type Refusal struct {
	// Status is the HTTP status: 429, 401, 503, 413, 400, or what Options.Reply chose; 403 if a proxy
	// asked by ForwardAuth and did not say about which call.
	Status int
	// Code is the canonical gRPC status code of the same outcome.
	Code uint32
	// ContentType and Body are a problem detail (RFC 9457), unless Options.Reply replaces them.
	ContentType string
	Body        []byte
	// Message is the sentence for the caller, in the body and in the gRPC status.
	Message string
	// RetryAfter is the time to wait before trying again, or 0 if waiting cannot help.
	RetryAfter time.Duration
	// Violated are the limits that the caller is over, as the RateLimit header names them.
	Violated []string
	// Decision is the decision that refused the call.
	Decision Decision
	// Reference is an encrypted text that says what the refusal was about, or "" without
	// Options.ReferenceKeys. ExplainReference of package operate reads it. It is in the Body.
	// SetHeader sets it too, so it reaches the caller even if Options.Reply replaces the body.
	Reference string
}

// retryStoreAfter is the Retry-After while the store does not answer.
const retryStoreAfter = time.Second

// The canonical status codes of gRPC that stand for our replies.
const (
	codeCanceled          = 1
	codeInvalidArgument   = 3
	codeDeadlineExceeded  = 4
	codePermissionDenied  = 7
	codeResourceExhausted = 8
	codeUnavailable       = 14
	codeUnauthenticated   = 16
)

// reply is what is sent for a reason.
type reply struct {
	status  int
	code    uint32
	problem string // its type
	message string
	wait    time.Duration
}

var replies = map[Reason]reply{
	LimitExceeded:   {http.StatusTooManyRequests, codeResourceExhausted, problem.QuotaExceeded, "", 0},
	Banned:          {http.StatusTooManyRequests, codeResourceExhausted, problem.AbnormalUsage, "", 0},
	Blocked:         {http.StatusTooManyRequests, codeResourceExhausted, "", "", 0},
	NotLoggedIn:     {http.StatusUnauthorized, codeUnauthenticated, "", "Log in to do this.", 0},
	IdentifyFailed:  {http.StatusServiceUnavailable, codeUnavailable, problem.ReducedCapacity, "The caller could not be identified. Try again shortly.", retryStoreAfter},
	StoreFailClosed: {http.StatusServiceUnavailable, codeUnavailable, problem.ReducedCapacity, "Calls cannot be counted at the moment. Try again shortly.", retryStoreAfter},
	ContextEnded:    {http.StatusServiceUnavailable, codeCanceled, "", "The call ended before it was admitted.", 0},
	CostTooHigh:     {http.StatusBadRequest, codeInvalidArgument, "", "This call costs more than its limit can ever allow.", 0},
}

// tooLarge is the reply for CostTooHigh if the cost was computed by CostBySize.
var tooLarge = reply{http.StatusRequestEntityTooLarge, codeInvalidArgument, "", "The body is larger than its limit can ever allow.", 0}

// newRefusal returns the response to a refused call, by the reply o. The message is for callers
// over a limit.
func newRefusal(keys reference.Keys, d *Decision, o reply, message string, violated []string) *Refusal {
	r := &Refusal{
		Status: o.status, Code: o.code, ContentType: problem.ContentType, Message: o.message, RetryAfter: o.wait,
		Violated: violated, Decision: *d,
	}
	if d.overLimit() {
		r.RetryAfter, r.Message = d.RetryAfter, message
	}
	r.Reference = referenceOf(keys, &r.Decision, r.RetryAfter)
	body := problem.Details{Type: o.problem, Status: r.Status, Message: r.Message, Violated: violated, Reference: r.Reference}
	r.Body = body.Body()
	return r
}

// referenceOf returns the text of the reference of a refusal by a decision, or "" if there are no
// keys. The caller was told to wait for so long.
func referenceOf(keys reference.Keys, d *Decision, wait time.Duration) string {
	if len(keys) == 0 {
		return ""
	}
	return keys.Seal(&reference.Content{
		Time: time.Now().UnixMicro(), Reason: reference.NumberOf(string(d.Reason)), Remaining: int64(d.Remaining),
		Wait: int64((wait + time.Millisecond - 1) / time.Millisecond), Limit: d.Limit.String(), Rule: d.Rule,
	}, d.Key)
}

// refusalMessage returns the message for a caller over a limit, unless the rule has a Message of
// its own.
func refusalMessage(d *Decision, limit string) string {
	text := make([]byte, 0, 128) // on the stack: a refusal should cost little
	switch {
	case d.Reason == Blocked && d.RetryAfter == 0:
		return "Calls are refused."
	case d.Reason == Banned || d.Reason == Blocked:
		text = append(text, "Calls are refused for another "...)
	case d.Limit.Algorithm.properties().Slots:
		text = append(append(append(text, "Limit of "...), limit...), " reached. Try again when another call has ended, or in "...)
	case d.Remaining > 0:
		text = append(append(append(text, "Rate limit of "...), limit...), " leaves too little for this call. Try again in "...)
	default:
		text = append(append(append(text, "Rate limit of "...), limit...), " exceeded. Try again in "...)
	}
	return string(append(waits.Append(text, d.RetryAfter), '.'))
}

// endedBy sets the gRPC code for a caller whose deadline passed, rather than one who gave up.
func (r *Refusal) endedBy(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		r.Code = codeDeadlineExceeded
	}
}

// SetHeader sets the headers of the refusal itself: Content-Type, Cache-Control, and if they apply
// Retry-After, WWW-Authenticate and Refusal-Reference.
func (r *Refusal) SetHeader(w adapter.HeaderWriter) {
	w.Set("Content-Type", r.ContentType)
	w.Set("Cache-Control", "no-store")
	if r.RetryAfter > 0 {
		w.Set("Retry-After", strconv.FormatInt(waits.RetryAfter(r.RetryAfter), 10))
	}
	if r.Status == http.StatusUnauthorized {
		w.Set("Www-Authenticate", "Bearer")
	}
	if r.Reference != "" {
		w.Set("Refusal-Reference", r.Reference)
	}
}

// longestPushback is the longest wait that a gRPC client is asked to sit out by itself.
const longestPushback = 5 * time.Second

// SetPushback sets the trailer grpc-retry-pushback-ms, which gRPC's own retry policy follows, to
// the wait in milliseconds. If the wait is longer than 5 s, or waiting does not help, it is -1 (do
// not retry). Without the trailer, the client would retry at once.
func (r *Refusal) SetPushback(trailer adapter.HeaderWriter) {
	millis := int64(-1)
	if 0 < r.RetryAfter && r.RetryAfter <= longestPushback {
		millis = int64((r.RetryAfter + time.Millisecond - 1) / time.Millisecond)
	}
	trailer.Add("grpc-retry-pushback-ms", strconv.FormatInt(millis, 10))
}
