package rivals

import (
	"sync"

	"golang.org/x/time/rate"
)

// rateInMap is what many services write by hand: a golang.org/x/time/rate.Limiter for each key, in
// a map behind a mutex. It forgets no key.
var rateInMap = InProcess{"x/time/rate in a map", func(l Limit, _ int) (func(string) bool, func()) {
	var mu sync.Mutex
	limiters := make(map[string]*rate.Limiter)
	each := rate.Limit(l.perSecond())
	return func(subject string) bool {
		mu.Lock()
		limiter, known := limiters[subject]
		if !known {
			limiter = rate.NewLimiter(each, l.Max)
			limiters[subject] = limiter
		}
		mu.Unlock()
		return limiter.Allow()
	}, func() {}
}}
