package rivals

import (
	"github.com/sethvargo/go-limiter/memorystore"
)

// sethvargo is github.com/sethvargo/go-limiter: a bucket that is filled completely once per span.
var sethvargo = InProcess{GoLimiter, func(l Limit, _ int) (func(string) bool, func()) {
	store := must(memorystore.New(&memorystore.Config{Tokens: uint64(l.Max), Interval: l.Window}))
	return func(subject string) bool {
		_, _, _, ok, err := store.Take(background, subject)
		return err == nil && ok
	}, func() { _ = store.Close(background) }
}}
