package core

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/localfirst"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// Limiter decides. Make one for a service with [New] and share it: it is safe for concurrent use.
//
// [Limiter.Guard] and the adapters decide by rules and calls. The other methods work on a counter directly, named by a name, a
// subject and a limit; these are the same that a rule forms, so they reach every rule's counters.
type Limiter struct {
	store     store
	near      *localfirst.Store // store itself if there is Redis, otherwise nil
	redis     *redisstore.Store // what store asks; nil without Redis
	source    Source
	keyHead   string
	clientIPs *clientIPs
	headers   HeaderStyle
	options   Options
	complains complaints
	calls     sync.Pool // of *call
	directs   sync.Pool // of *directCall
	prepared  preparedCalls
	limits    limitCache
	tallies   tallies
	names     names
	refunds   refunds
	late      lateReleases
	callIDs   atomic.Uint64
	closed    atomic.Bool
	outer     atomic.Pointer[outerCall]
	nextOuter atomic.Int64 // when the next may be remembered
	failures  [failure.Classes]atomic.Uint64

	holderPrefix string
	holders      atomic.Uint64
}

// store is an engine with its counters.
type store interface {
	// Decide answers for one call's counters, charging all of them or none. It never panics and returns by its deadline.
	Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict)
	// Reserve takes a turn at a bucket, if it comes within patience, in microseconds.
	Reserve(ctx context.Context, c *algorithm.Counter, patience int64) algorithm.Verdict
	// GiveBack gives charges back, as far as they still count, also after the context has ended.
	GiveBack(ctx context.Context, charges []algorithm.Charge) error
	// Renew keeps the slots of a call in flight for another window each.
	Renew(ctx context.Context, slots []algorithm.Charge) error
	// Records are the calls that count in a log now, newest first.
	Records(ctx context.Context, key []byte, limit *algorithm.Limit) ([]algorithm.Record, error)
	// Ban bans a subject by hand, for so many microseconds. The key is that of its ban.
	Ban(ctx context.Context, key []byte, span int64) error
	// Reset forgets a key.
	Reset(ctx context.Context, key []byte) error
	// InBackground runs what nobody waits for but Close.
	InBackground(do func())
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
	options.ClientIP = ClientIP{} // nobody reads it any more
	l := &Limiter{
		keyHead: keyHead(options.Prefix), clientIPs: ips, headers: options.Headers, options: options,
		complains: complaints{logger: options.Logger}, holderPrefix: newHolderPrefix(),
	}
	l.late.limiter = l
	l.tallies.init()
	l.calls.New = func() any {
		return &call{limiter: l, looks: true, id: l.callIDs.Add(1) << 32, stripe: l.tallies.stripe()}
	}
	l.directs.New = func() any { return newDirectCall(l) }
	switch client := options.Redis; {
	case client == nil:
		l.store, l.source = memstore.New(options.MaxKeys, nil), FromMemory
		l.keyHead = "" // nobody else writes to this process's table
	case reflect.ValueOf(client).Kind() == reflect.Pointer && reflect.ValueOf(client).IsNil():
		return nil, &RuleError{Field: "Options.Redis", Value: fmt.Sprintf("(%T)(nil)", client), Why: "must be a client, or unset"}
	default:
		l.redis = redisstore.New(client, options.Timeout)
		l.redis.Listen(&l.complains)
		l.near = localfirst.New(l.redis, options.Timeout, options.MaxKeys)
		l.store, l.source = l.near, FromRedis
	}
	options.Logger.Info("accesslimit counts", slog.String("in", string(l.source)), slog.String("prefix", options.Prefix))
	return l, nil
}

// Close ends what runs in the background: sweeping, renewing the slots of calls in flight, and charges and leases that are being
// given back, for at most Timeout each. The Redis client stays open. Call it when no call is in flight any more: slots that are held
// then, or taken later, are free after their Window, though their calls go on.
func (l *Limiter) Close() {
	l.closed.Store(true)
	l.store.Close()
	l.complains.close()
}

// Allow asks for one permit: may this subject do this now?
//
//	d, err := limiter.Allow(ctx, "reply", "user:alice", core.PerMinute(5))
//
// Being refused is d.Allowed == false. An error means that there is no decision, and the Decision is the zero one: ErrStore
// (the store did not answer: whether to go on is the caller's choice here), the context's error when it has ended, or a
// *RuleError when the call itself is wrong (an empty name or subject, a limit that is none).
func (l *Limiter) Allow(ctx context.Context, name, subject string, limit Limit) (d Decision, err error) {
	err = l.allow(ctx, &d, &limit, &question{name: name, subject: subject, n: 1, charge: true})
	return d, err
}

// AllowN asks for n permits, all or none. No permits are always allowed and charge nothing. More than the limit can ever
// let through at once is ErrCostExceedsLimit, a negative number a *RuleError; otherwise as Allow.
func (l *Limiter) AllowN(ctx context.Context, name, subject string, limit Limit, n int) (d Decision, err error) {
	err = l.allow(ctx, &d, &limit, &question{name: name, subject: subject, n: n, charge: true})
	return d, err
}

func (l *Limiter) allow(ctx context.Context, d *Decision, limit *Limit, q *question) error {
	if limit.Algorithm == Concurrency {
		return &RuleError{Rule: q.name, Field: "Algorithm", Value: limit.Algorithm, Why: "takes slots that are given back: use Hold"}
	}
	return l.direct(ctx, d, limit, q)
}

// Peek says what Allow would, charging nothing: Remaining is what is left now. Errors are those of Allow.
func (l *Limiter) Peek(ctx context.Context, name, subject string, limit Limit) (d Decision, err error) {
	err = l.direct(ctx, &d, &limit, &question{name: name, subject: subject, n: 1})
	return d, err
}

// Reset forgets what a subject used of one limit, as if it had never called: a rule's Also, and plans of other spans, have
// counters of their own. A bare address as the subject is a *RuleError: use [IPSubject]. Other errors are those of Allow.
func (l *Limiter) Reset(ctx context.Context, name, subject string, limit Limit) error {
	if err := checkOperated(name, subject); err != nil {
		return err
	}
	if limit.unlimited() {
		return l.unlimited(ctx, new(Decision), &question{name: name, subject: subject})
	}
	compiled, err := l.counter(name, subject, limit)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.storeError(name, l.store.Reset(ctx, l.appendDirectKey(nil, name, subject, compiled)))
}

// negative is the error of a cost below zero.
func negative(name string, n int) error {
	return &RuleError{Rule: name, Field: "n", Value: n, Why: "must not be negative"}
}

// checkNamed checks what names a counter.
func checkNamed(name, subject string) error {
	switch {
	case name == "":
		return &RuleError{Field: "name", Value: name, Why: "must say what is limited"}
	case subject == "":
		return &RuleError{Rule: name, Field: "subject", Value: subject, Why: "must say who is limited, as in user:alice"}
	}
	return nil
}

// counter checks what a direct call says of its counter.
func (l *Limiter) counter(name, subject string, limit Limit) (*algorithm.Limit, error) {
	if err := checkNamed(name, subject); err != nil {
		return nil, err
	}
	return l.compiled(name, limit)
}

// compiled is the limit of a direct call as the engines calculate with it.
func (l *Limiter) compiled(name string, limit Limit) (*algorithm.Limit, error) {
	compiled, err := l.limits.of(limit)
	if wrong, ok := err.(*RuleError); ok {
		wrong.Rule = name
	}
	return compiled, err
}

func (l *Limiter) appendDirectKey(dst []byte, name, subject string, limit *algorithm.Limit) []byte {
	return bounded(appendTail(appendHead(dst, l.keyHead, subject), name, limit))
}
