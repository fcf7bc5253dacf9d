package core

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/accesslimit/accesslimit/core/adapter"
	"github.com/accesslimit/accesslimit/core/internal/waits"
)

// Refusal is the reply to a caller who is refused. An adapter sends it unchanged.
type Refusal struct {
	// Status is the HTTP status: 429, 401, 503, 413, 400 or 500.
	Status int
	// Code is the canonical gRPC status code of the same outcome.
	Code uint32
	// ContentType and Body are a problem detail (RFC 9457), unless Options.Reply replaces them.
	ContentType string
	Body        []byte
	// Message is the sentence for the caller, in the body and in the gRPC status.
	Message string
	// Wait is the time to wait before trying again, or 0 if waiting cannot help.
	Wait time.Duration
	// Violated are the limits that the caller is over, as the RateLimit header names them.
	Violated []string
	// Decision is the decision that refused the call.
	Decision Decision
	// Reference is an encrypted text that says what the refusal was about, or "" without
	// Options.ReferenceKeys. ExplainReference of package operate reads it. It is in the Body. SetHeader sets it
	// too, so it reaches the caller even if Options.Reply replaces the body.
	Reference string
}

// retryStoreAfter is the Retry-After while the store does not answer.
const retryStoreAfter = time.Second

// The canonical status codes of gRPC that stand for our outcomes.
const (
	codeCanceled          = 1
	codeInvalidArgument   = 3
	codeDeadlineExceeded  = 4
	codeResourceExhausted = 8
	codeUnavailable       = 14
	codeUnauthenticated   = 16
)

// outcome is the reply that a reason leads to.
type outcome struct {
	status  int
	code    uint32
	problem string // fragment of the draft's problem types, "" for about:blank
	message string
	wait    time.Duration
}

var outcomes = map[Reason]outcome{
	LimitExceeded:   {http.StatusTooManyRequests, codeResourceExhausted, "quota-exceeded", "", 0},
	Banned:          {http.StatusTooManyRequests, codeResourceExhausted, "abnormal-usage-detected", "", 0},
	Blocked:         {http.StatusTooManyRequests, codeResourceExhausted, "", "", 0},
	NotLoggedIn:     {http.StatusUnauthorized, codeUnauthenticated, "", "Log in to do this.", 0},
	IdentifyFailed:  {http.StatusServiceUnavailable, codeUnavailable, "temporary-reduced-capacity", "The caller could not be identified. Try again shortly.", retryStoreAfter},
	StoreFailClosed: {http.StatusServiceUnavailable, codeUnavailable, "temporary-reduced-capacity", "Calls cannot be counted at the moment. Try again shortly.", retryStoreAfter},
	ContextEnded:    {http.StatusServiceUnavailable, codeCanceled, "", "The call ended before it was admitted.", 0},
	CostTooHigh:     {http.StatusBadRequest, codeInvalidArgument, "", "This call costs more than its limit can ever allow.", 0},
}

// tooLarge is the outcome of CostTooHigh if the cost was computed by CostBySize.
var tooLarge = outcome{http.StatusRequestEntityTooLarge, codeInvalidArgument, "", "The body is larger than its limit can ever allow.", 0}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// newRefusal returns the response to a refused call, with the outcome o. The message is for callers
// over a limit.
func newRefusal(references references, d *Decision, o outcome, message string, violated []string) *Refusal {
	r := &Refusal{
		Status: o.status, Code: o.code, ContentType: "application/problem+json", Message: o.message, Wait: o.wait,
		Violated: violated, Decision: *d,
	}
	if d.overLimit() {
		r.Wait, r.Message = d.RetryAfter, message
	}
	r.Reference = references.of(&r.Decision, r.Wait)
	r.Body = r.appendProblem(make([]byte, 0, 192+len(r.Message)+len(r.Reference)), o.problem)
	return r
}

// appendProblem appends the body of a refusal, RFC 9457 with the extension member of the draft.
func (r *Refusal) appendProblem(body []byte, problem string) []byte {
	body = append(body, `{"type":"`...)
	if problem == "" {
		body = append(body, "about:blank"...)
	} else {
		body = append(append(body, problemTypes...), problem...)
	}
	body = appendJSON(append(body, `","title":`...), http.StatusText(r.Status))
	body = strconv.AppendInt(append(body, `,"status":`...), int64(r.Status), 10)
	body = appendJSON(append(body, `,"detail":`...), r.Message)
	for i, title := range r.Violated {
		if i == 0 {
			body = append(body, `,"violated-policies":[`...)
		} else {
			body = append(body, ',')
		}
		body = appendJSON(body, title)
	}
	if len(r.Violated) > 0 {
		body = append(body, ']')
	}
	if r.Reference != "" {
		body = appendJSON(append(body, `,"reference":`...), r.Reference)
	}
	return append(body, '}')
}

// appendJSON appends a text as encoding/json does. It calls encoding/json only if something must be
// escaped.
func appendJSON(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(text) // a string: it cannot fail
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

// endedBy sets the gRPC code for a caller whose deadline passed, rather than one who gave up.
func (r *Refusal) endedBy(err error) *Refusal {
	if errors.Is(err, context.DeadlineExceeded) {
		r.Code = codeDeadlineExceeded
	}
	return r
}

// SetHeader sets the headers of the refusal itself: Content-Type, Cache-Control, and if they apply
// Retry-After, WWW-Authenticate and Refusal-Reference.
func (r *Refusal) SetHeader(w adapter.HeaderWriter) {
	w.Set("Content-Type", r.ContentType)
	w.Set("Cache-Control", "no-store")
	if r.Wait > 0 {
		w.Set("Retry-After", strconv.FormatInt(waits.RetryAfter(r.Wait), 10))
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
	if 0 < r.Wait && r.Wait <= longestPushback {
		millis = int64((r.Wait + time.Millisecond - 1) / time.Millisecond)
	}
	trailer.Add("grpc-retry-pushback-ms", strconv.FormatInt(millis, 10))
}
