package main

import (
	"fmt"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// recordCalls has a rival make calls through a proxy and returns the scripts that it sent. The
// very first call is left out, because it may load the script's text.
func (b *bench) recordCalls(rival string, limit rivals.Limit, do func(harness.AllowFunc) error) ([][]string, error) {
	recorder, err := harness.NewRecorder(b.server.Addrs()[0])
	if err != nil {
		return nil, err
	}
	defer recorder.Close()
	limiter, err := rivals.Find(rival).Open(rivals.Place{Addrs: []string{recorder.Addr()}}, limit)
	if err != nil {
		return nil, err
	}
	defer limiter.Close()
	if err := callOnce(limiter.Allow, harness.NewKeys("not", 1).At(0)); err != nil {
		return nil, err
	}
	calls, err := recorder.Record(func() error { return do(limiter.Allow) })
	if err == nil && len(calls) == 0 {
		err = fmt.Errorf("%s sent no script", rival)
	}
	return calls, err
}

// record returns the calls that a rival sends for all keys, encoded.
func (b *bench) record(rival string, limit rivals.Limit, keys harness.Keys) ([][]byte, error) {
	calls, err := b.recordCalls(rival, limit, func(allow harness.AllowFunc) error {
		return forEachKey(keys, func(subject string) error { return callOnce(allow, subject) })
	})
	encoded := make([][]byte, len(calls))
	for i, call := range calls {
		encoded[i] = harness.Encode(call)
	}
	return encoded, err
}

// callOnce calls a key, whatever the answer is.
func callOnce(allow harness.AllowFunc, subject string) error {
	_, err := patiently(allow, subject)
	return err
}
