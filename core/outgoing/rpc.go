package outgoing

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// TakeRPC is [Turns.Take] for a remote procedure call: for the key of a POST request to a host, with the
// method as its path and the metadata as its headers.
func (t *Turns) TakeRPC(ctx context.Context, host, method string, metadata map[string][]string) (*Turn, error) {
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Host: host, Path: method}, Header: make(http.Header)}
	for name, values := range metadata {
		for _, value := range values {
			r.Header.Add(name, value)
		}
	}
	return t.Take(ctx, t.KeyOf(r.WithContext(ctx)))
}

// RPCStatus is how a remote procedure call ended.
type RPCStatus struct {
	Code       int // of google.rpc.Code, as in gRPC and Connect
	Message    string
	RetryDelay time.Duration // of RetryInfo; 0: there is none
	Pushback   []string      // the values of grpc-retry-pushback-ms
}

// The codes that are not simply answers.
const (
	rpcCanceled          = 1
	rpcDeadlineExceeded  = 4
	rpcResourceExhausted = 8
	rpcUnavailable       = 14
)

// AnsweredRPC is [Turn.Answered] for a remote procedure call. RESOURCE_EXHAUSTED is a refusal, and
// UNAVAILABLE is one if the server says when to come back. Otherwise it may not come from a server.
func (t *Turn) AnsweredRPC(s RPCStatus) {
	wait := s.wait()
	switch s.Code {
	case rpcCanceled, rpcDeadlineExceeded:
	case rpcUnavailable:
		if wait > 0 {
			t.Answered(Answer{Refused: true, Wait: wait})
		}
	case rpcResourceExhausted:
		if !strings.Contains(s.Message, "larger than max") { // of this client, about the size of a message
			t.Answered(Answer{Refused: true, Wait: wait})
		}
	default:
		t.Answered(Answer{Wait: wait})
	}
}

// wait returns how long the server wants no call. A negative pushback only forbids repeating the call.
func (s *RPCStatus) wait() time.Duration {
	wait := max(0, s.RetryDelay)
	for _, value := range s.Pushback {
		if ms, err := strconv.ParseInt(value, 10, 32); err == nil {
			wait = max(wait, time.Duration(ms)*time.Millisecond)
		}
	}
	return wait
}
