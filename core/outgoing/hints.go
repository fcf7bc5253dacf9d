package outgoing

import (
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"
)

// usualQuotas are the headers without a standard that most servers send.
var usualQuotas = []Quota{
	{"X-RateLimit-Remaining", "X-RateLimit-Reset"},
	{"RateLimit-Remaining", "RateLimit-Reset"},
	{"X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"},
}

// answerOf reads what a response says about the server's limits. If it says several things, the
// longest wait counts. now is the time of this process, which counts if the response has no Date.
func answerOf(r *http.Response, vendor []Quota, now time.Time) (a Answer) {
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		now = date // whatever the server's clock shows
	}
	a.Wait = retryAfter(r, now)
	a.Refused = refuses(r.StatusCode, a.Wait > 0)
	exhausted := time.Duration(0)
	for _, q := range append(vendor[:len(vendor):len(vendor)], usualQuotas...) {
		exhausted = max(exhausted, q.exhausted(r, now, a.Refused))
	}
	for _, value := range fields(r.Header, "RateLimit") {
		exhausted = max(exhausted, exhaustedBy(value))
	}
	a.Refused = a.Refused || refuses(r.StatusCode, exhausted > 0)
	a.Wait = max(a.Wait, exhausted)
	return a
}

// retryAfter returns the wait of Retry-After and Retry-After-Ms. After a redirect, and with the status
// that the work is not done yet, it is about that one request, and no reason for others to wait.
func retryAfter(r *http.Response, now time.Time) (wait time.Duration) {
	if r.StatusCode == http.StatusAccepted || r.StatusCode >= 300 && r.StatusCode < 400 {
		return 0
	}
	for _, value := range fields(r.Header, "Retry-After") {
		wait = max(wait, waitIn(value, now))
	}
	for _, value := range fields(r.Header, "Retry-After-Ms") {
		wait = max(wait, milliseconds(value))
	}
	return wait
}

// refuses reports whether a status is that of a call beyond a limit. Servers send 403 and 503 for
// other reasons too, and then without a wait.
func refuses(status int, waits bool) bool {
	switch status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden, http.StatusServiceUnavailable:
		return waits
	}
	return false
}

// exhausted returns how long it takes until calls are left, or 0 if some are left now. If the server
// refused the call without saying that none are left, the reset counts too.
func (q Quota) exhausted(r *http.Response, now time.Time, refused bool) time.Duration {
	remaining := r.Header.Get(q.Remaining)
	if n, ok := number(remaining); ok && n <= 0 || remaining == "" && refused {
		return waitIn(r.Header.Get(q.Reset), now)
	}
	return 0
}

// longestField bounds the fields that are read, because reading a structured one takes far more memory than
// its text, and reading a hundred thousand lines takes long.
const longestField = 4 << 10

// fields returns the values of a field, unless a server sends more than any needs.
func fields(h http.Header, name string) []string {
	values, length := h.Values(name), 0
	for _, value := range values {
		if length += len(name) + len(value); length > longestField {
			return nil
		}
	}
	return values
}

// exhaustedBy reads the RateLimit field in the forms of the drafts: "default";r=0;t=30, or
// limit=10, remaining=0, reset=30. It returns the longest wait of those policies that have no calls
// left.
func exhaustedBy(field string) (wait time.Duration) {
	if list, err := httpsfv.UnmarshalList([]string{field}); err == nil {
		for _, member := range list {
			if item, ok := member.(httpsfv.Item); ok {
				wait = max(wait, unlessLeft(item.Params.Get, "r", "t"))
			}
		}
		return wait
	}
	values, err := httpsfv.UnmarshalDictionary([]string{field})
	if err != nil {
		return 0
	}
	return unlessLeft(func(name string) (any, bool) {
		member, _ := values.Get(name)
		item, ok := member.(httpsfv.Item)
		return item.Value, ok
	}, "remaining", "reset")
}

// unlessLeft returns the seconds until calls are left, or 0 if some are left now.
func unlessLeft(get func(name string) (any, bool), remaining, reset string) time.Duration {
	left, _ := get(remaining)
	after, _ := get(reset)
	if n, ok := left.(int64); ok && n <= 0 {
		if n, ok := after.(int64); ok {
			return inSeconds(float64(n))
		}
	}
	return 0
}
