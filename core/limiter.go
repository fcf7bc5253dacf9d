package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// Limiter decides. Make one for a service with [New] and share it: it is safe for concurrent use.
//
// [Limiter.Guard] and the adapters decide by rules and calls. Allow, AllowN, Peek and Reset work on a counter directly,
// named by a name, a subject and a limit; these are the same that a rule forms, so they reach every rule's counters.
type Limiter struct {
	store     store
	source    Source
	keyHead   string
	clientIPs *clientIPs
	headers   HeaderStyle
	options   Options
	complains complaints
	calls     sync.Pool // of *call
	limits    limitCache
	names     names
}

// store is an engine with its counters.
type store interface {
	// Decide answers for one call's counters, charging all of them or none. It never panics and returns by its deadline.
	Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict)
	// Reset forgets a key.
	Reset(ctx context.Context, key []byte) error
	// Close ends what runs in the background.
	Close()
}

// New makes a Limiter. Nothing connects: a service starts while its Redis is down. The error is a *RuleError.
func New(options Options) (*Limiter, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	ips, err := options.ClientIP.compile()
	if err != nil {
		return nil, err
	}
	l := &Limiter{
		keyHead: keyHead(options.Prefix), clientIPs: ips, headers: options.Headers, options: options,
		complains: complaints{logger: options.Logger},
	}
	l.calls.New = func() any { return &call{limiter: l} }
	switch client := options.Redis; {
	case client == nil:
		l.store, l.source = memstore.New(options.MaxKeys, nil), FromMemory
	case reflect.ValueOf(client).Kind() == reflect.Pointer && reflect.ValueOf(client).IsNil():
		return nil, &RuleError{Field: "Options.Redis", Value: fmt.Sprintf("(%T)(nil)", client), Why: "must be a client, or unset"}
	default:
		l.store, l.source = redisstore.New(client, options.Timeout), FromRedis
	}
	options.Logger.Info("accesslimit counts", slog.String("in", string(l.source)), slog.String("prefix", options.Prefix))
	return l, nil
}

// Close ends what runs in the background: sweeping, and charges that are being given back, for at most Timeout. The Redis
// client stays open.
func (l *Limiter) Close() { l.store.Close() }

// Allow asks for one permit: may this subject do this now?
//
//	d, err := limiter.Allow(ctx, "reply", "user:alice", core.PerMinute(5))
//
// Being refused is d.Allowed == false. An error means that there is no decision, and the Decision is the zero one: ErrStore
// (the store did not answer: whether to go on is the caller's choice here), the context's error when it has ended, or a
// *RuleError when the call itself is wrong (an empty name or subject, a limit that is none).
func (l *Limiter) Allow(ctx context.Context, name, subject string, limit Limit) (Decision, error) {
	return l.AllowN(ctx, name, subject, limit, 1)
}

// AllowN asks for n permits, all or none. No permits are always allowed and charge nothing. More than the limit can ever
// let through at once is ErrCostExceedsLimit, a negative number a *RuleError; otherwise as Allow.
func (l *Limiter) AllowN(ctx context.Context, name, subject string, limit Limit, n int) (Decision, error) {
	d, err := l.direct(ctx, name, subject, limit, n, true)
	if err == nil && l.options.OnDecision != nil {
		l.options.OnDecision(ctx, d)
	}
	return d, err
}

// Peek says what Allow would, charging nothing: Remaining is what is left now. Errors are those of Allow.
func (l *Limiter) Peek(ctx context.Context, name, subject string, limit Limit) (Decision, error) {
	return l.direct(ctx, name, subject, limit, 1, false)
}

// Reset forgets what a subject used, as if it had never called. Errors are those of Allow.
func (l *Limiter) Reset(ctx context.Context, name, subject string, limit Limit) error {
	compiled, err := l.counter(name, subject, limit)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err = l.store.Reset(ctx, l.appendDirectKey(nil, name, subject, compiled))
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

// direct decides over the one counter of a direct call.
func (l *Limiter) direct(ctx context.Context, name, subject string, limit Limit, n int, charge bool) (Decision, error) {
	compiled, err := l.counter(name, subject, limit)
	switch {
	case err != nil:
		return Decision{}, err
	case n < 0:
		return Decision{}, &RuleError{Rule: name, Field: "n", Value: n, Why: "must not be negative"}
	case int64(n) > compiled.Max:
		return Decision{}, fmt.Errorf("%w: %d of %v", ErrCostExceedsLimit, n, limit)
	case ctx.Err() != nil:
		return Decision{}, ctx.Err()
	}
	c := l.open(nil)
	defer l.close(c)
	counter := c.addCounter()
	counter.Key = l.appendDirectKey(counter.Key[:0], name, subject, compiled)
	counter.Limit, counter.Cost, counter.Required = compiled, int64(n), true
	l.store.Decide(ctx, c.counters, charge, c.verdicts)
	v := &c.verdicts[0]
	switch {
	case v.Ended != nil:
		return Decision{}, v.Ended
	case v.Err != nil:
		return Decision{}, fmt.Errorf("%w: %w", ErrStore, v.Err)
	}
	d := decisionOf(name, limit, v, l.source)
	d.Key = subject
	return d, nil
}

// counter checks what names a counter.
func (l *Limiter) counter(name, subject string, limit Limit) (*algorithm.Limit, error) {
	switch {
	case name == "":
		return nil, &RuleError{Field: "name", Value: name, Why: "must say what is limited"}
	case subject == "":
		return nil, &RuleError{Rule: name, Field: "subject", Value: subject, Why: "must say who is limited, as in user:alice"}
	}
	compiled, err := l.limits.of(limit)
	if wrong, ok := err.(*RuleError); ok {
		wrong.Rule = name
	}
	return compiled, err
}

func (l *Limiter) appendDirectKey(dst []byte, name, subject string, limit *algorithm.Limit) []byte {
	return appendTail(appendKey(dst, l.keyHead, subject, ""), name, limit)
}
