package rivals

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/algorithms"
)

// Silent is a logger that keeps our log out of the tables.
var Silent = slog.New(slog.DiscardHandler)

// ourLimit returns the limit as a core.Limit, with the algorithm that is part of the name.
func ourLimit(name string, l Limit) core.Limit {
	for _, a := range algorithms.All() {
		switch {
		case !strings.Contains(name, a.String()):
		case a == core.TokenBucket:
			permits, span := l.rate()
			if name == ByTheHour {
				return core.PerHour(1000).Bucket(min(l.Max, 100_000_000)) // 1e9 could not be counted exactly
			}
			return core.Limit{Max: permits, Window: span}.Bucket(l.Max)
		default:
			return core.Limit{Max: l.Max, Window: l.Window, Algorithm: a}
		}
	}
	panic("rivals: no algorithm in " + name)
}

// oneKeyPerScript are the options of a limiter whose scripts hold the keys of a single call.
var oneKeyPerScript = core.Options{OneKeyPerScript: true}

// clientTimeout equals go-redis's default, so that a slow server affects all rivals alike.
const clientTimeout = 3 * time.Second

// allowFunc is Allow of a handle, or Hold of core.Slots.
type allowFunc func(ctx context.Context, subject string) (core.Decision, error)

// onRedis returns a limiter of ours with the algorithm that is part of the name.
func onRedis(name string, options core.Options) Redis {
	return withHandle(name, options, func(limiter *core.Limiter, limit core.Limit) (allowFunc, func(string) error) {
		if limit.Algorithm != core.Concurrency {
			return limiter.MustCounter("bench", limit).Allow, nil
		}
		slots := limiter.MustSlots("bench", limit.Max).LostAfter(limit.Window)
		return func(ctx context.Context, subject string) (core.Decision, error) {
			_, d, err := slots.Hold(ctx, subject) // it is never released
			return d, err
		}, nil
	})
}

// overridable returns a counter of ours beside overrides.
func overridable(name string) Redis {
	r := withHandle(name, core.Options{}, func(limiter *core.Limiter, limit core.Limit) (allowFunc, func(string) error) {
		counter := limiter.MustCounter("bench", limit)
		overrides := must(operate.New(limiter).Overrides("bench"))
		if name == NoOverride {
			return counter.Allow, nil
		}
		return counter.Allow, func(subject string) error {
			limit := limit
			limit.Max--
			return overrides.Set(background, subject, operate.Override{Limits: []core.Limit{limit}})
		}
	})
	r.Costs = name == NoOverride
	return r
}

func withHandle(name string, options core.Options, open func(*core.Limiter, core.Limit) (allowFunc, func(string) error)) Redis {
	return Redis{Name: name, Costs: true, Open: func(p Place, l Limit) (Opened, error) {
		client, own := p.client(), options
		own.Logger, own.Timeout = Silent, clientTimeout
		if name != Here {
			own.Redis = client
		}
		limiter, err := core.New(own)
		if err != nil {
			return Opened{}, err
		}
		call, override := open(limiter, ourLimit(name, l))
		allow := func(ctx context.Context, subject string) (allowed bool, err error) {
			d, err := call(ctx, subject)
			return d.Allowed, err
		}
		return Opened{allow, func() { limiter.Close(); _ = client.Close() }, override}, nil
	}}
}

func inProcess(name string) InProcess {
	return InProcess{name, func(l Limit, keys int) (func(string) bool, func()) {
		limiter := must(core.New(core.Options{MaxKeys: max(2*keys, 250_000), Logger: Silent}))
		counter := limiter.MustCounter("bench", ourLimit(name, l))
		return func(subject string) bool {
			d, err := counter.Allow(background, subject)
			return err == nil && d.Allowed
		}, limiter.Close
	}}
}

// must panics on an error, which only a mistake in this program can cause.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
