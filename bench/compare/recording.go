package main

import (
	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// record returns the scripts that a rival sends while many goroutines call all keys, encoded.
func (b *bench) record(rival string, limit rivals.Limit, keys harness.Keys) ([][]byte, error) {
	callAll := func(keys harness.Keys) func(harness.AllowFunc) error {
		return func(allow harness.AllowFunc) error {
			return forEachKey(keys, func(subject string) error { return callOnce(allow, subject) })
		}
	}
	scripts, err := rivals.Find(rival).Record(b.place(), limit, callAll(harness.NewKeys("not", keys.Len())), callAll(keys))
	encoded := make([][]byte, len(scripts))
	for i, script := range scripts {
		encoded[i] = harness.Encode(script)
	}
	return encoded, err
}

// callOnce calls a key, whatever the answer is.
func callOnce(allow harness.AllowFunc, subject string) error {
	_, err := patiently(allow, subject)
	return err
}
