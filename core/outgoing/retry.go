package outgoing

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/panics"
)

// longestKept is the length of the longest body of a refusal that is kept, so that the caller gets it
// if the call cannot be repeated.
const longestKept = 64 << 10

// retry repeats a call that the server refused, as often as the rule allows. Each attempt takes a
// turn, and so waits for the end of the pause. If that takes too long, the caller gets the server's
// refusal.
func (t *transport) retry(r *http.Request, response *http.Response, refused bool) (*http.Response, error) {
	for range t.turns.rule.Retries {
		if !refused || !isRepeatable(r) || !t.turns.keepBody(response) {
			break
		}
		again, err := copyOf(r)
		if err != nil {
			break
		}
		var wait *WaitError
		next, stillRefused, err := t.send(again)
		switch {
		case errors.As(err, &wait):
			return response, nil
		case err != nil:
			return next, err
		}
		response, refused = next, stillRefused
	}
	return response, nil
}

// isRepeatable reports whether a request may be sent twice: it has the same effect as once, or a key by
// which the server recognizes it, and its body can be read again.
func isRepeatable(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
	default:
		if r.Header.Get("Idempotency-Key") == "" && r.Header.Get("X-Idempotency-Key") == "" {
			return false
		}
	}
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
}

// copyOf returns a request to send in place of one that was sent.
func copyOf(r *http.Request) (*http.Request, error) {
	again := r.Clone(r.Context())
	if r.Body == nil || r.GetBody == nil {
		return again, nil
	}
	body, err := r.GetBody()
	again.Body = body
	return again, err
}

// keepBody reads the body of a response to its end, and closes it, so that its connection and its slot
// are free. It reports false if the body is too long or broken; then it can still be read. A body that
// takes longer than calls wait is broken.
func (t *Turns) keepBody(r *http.Response) bool {
	if r.Body == nil {
		return true
	}
	body := r.Body
	late := time.AfterFunc(t.rule.MaxWait, panics.Guard(func() { _ = body.Close() }, t.parts.Log.Panicked))
	defer late.Stop()
	start, err := io.ReadAll(io.LimitReader(body, longestKept+1))
	if err != nil || len(start) > longestKept {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(start), body), body}
		return false
	}
	_ = body.Close()
	r.Body = io.NopCloser(bytes.NewReader(start))
	return true
}
