package outgoing

import (
	"net/http"
	"time"
)

// Transport returns a RoundTripper whose requests take turns. next sends them; nil stands for
// http.DefaultTransport. Its errors are those of [Turns.Take] and those of next.
//
// Danger: a request that waits has not been sent, but http.Client.Timeout runs.
func (t *Turns) Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &transport{turns: t, next: next}
}

type transport struct {
	turns *Turns
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, refused, err := t.send(r)
	if err != nil || !refused {
		return response, err
	}
	return t.retry(r, response, refused)
}

// send sends a request when its turn has come, and reports whether the server refused it.
func (t *transport) send(r *http.Request) (response *http.Response, refused bool, err error) {
	turn, err := t.turns.Take(r.Context(), t.turns.KeyOf(r))
	if err != nil {
		closeBody(r)
		return nil, false, err
	}
	inFlight := false
	defer func() {
		if !inFlight { // also after a panic
			turn.Release()
		}
	}()
	response, err = t.next.RoundTrip(r)
	if err != nil || response == nil { // http.Client says what is wrong if there is neither
		return response, false, err
	}
	refused = t.reportAnswer(r, response, turn)
	inFlight = true
	releaseAfter(r.Context(), response, turn)
	return response, refused, nil
}

// reportAnswer reports to the turn what a response says about limits, and returns whether the server
// refused the request. If a function of the service panics, such as OnDecision, nobody gets the
// response, so its body is closed.
func (t *transport) reportAnswer(r *http.Request, response *http.Response, turn *Turn) (refused bool) {
	returned := false
	defer func() {
		if !returned && response.Body != nil {
			_ = response.Body.Close()
		}
	}()
	answer := answerOf(response, t.turns.rule.Quotas, time.Now())
	about := t.turns.keyOfAnswer(r, response, turn.key)
	t.turns.adapt(about, policiesOf(response.Header))
	turn.answer(about, answer)
	returned = true
	return answer.Refused
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach next.
func (t *transport) CloseIdleConnections() {
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// longestResource bounds the name of a quota that a server sends, because it is kept.
const longestResource = 100

// keyOfAnswer returns the key that a response is about: that of the quota that it names, if the rule
// tells quotas apart.
func (t *Turns) keyOfAnswer(r *http.Request, response *http.Response, key string) string {
	resource := response.Header.Get("X-RateLimit-Resource")
	if t.rule.Resource == nil || resource == "" || len(resource) > longestResource {
		return key
	}
	return withResource(t.rule.Key(r), resource)
}

// closeBody closes the body of a request that is not sent, as every RoundTripper must.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
