package core

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/banwatch"
	"github.com/accesslimit/accesslimit/core/internal/clientip"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
	"github.com/accesslimit/accesslimit/core/internal/limitheader"
	"github.com/accesslimit/accesslimit/core/internal/localfirst"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/notices"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/outercall"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/core/internal/reference"
	"github.com/accesslimit/accesslimit/core/internal/refund"
	"github.com/accesslimit/accesslimit/core/internal/tally"
	"github.com/accesslimit/accesslimit/core/internal/toplist"
)

// Limiter decides whether calls may go on. Make one for a service with [New] and share it. It is
// safe for concurrent use.
//
// The adapters attach rules to routes; [Limiter.Guard] and [Limiter.Check] prepare rules. Without a
// framework, make a [Counter], [Pacer], [Log] or [Slots] once and call it often.
type Limiter struct {
	store       store
	local       *localfirst.Store // store itself if there is Redis, otherwise nil
	redis       *redisstore.Store // what store asks; nil without Redis
	memory      *memstore.Store   // store itself if there is no Redis, otherwise nil
	source      Source
	keyHead     string
	clientIPs   *clientip.Finder
	references  reference.Keys // none unless refusals have references
	options     Options
	operatorLog *operatorlog.Log
	calls       sync.Pool // of *call
	directs     sync.Pool // of *directCall
	tallies     *tally.Table
	tops        *toplist.Table
	topOff      optional
	registry    registry
	audits      audits
	bans        bans
	banWatch    *banwatch.Watch // nil without Redis
	banWatchOff optional

	thresholds *notices.Queue // nil without Options.OnThreshold

	maxOverrides int // of a rule, or without Redis of all rules
	refunds      refund.Ledger
	inFlight     *inflight.Keeper
	outerCalls   outercall.Calls
	callIDs      atomic.Uint64
	failures     failure.Counts
}

// store is an engine with its counters.
type store interface {
	// Decide answers for one call's counters, charging all of them or none. It never panics and
	// returns by its deadline.
	Decide(ctx context.Context, counters []algorithm.Counter, charge bool, verdicts []algorithm.Verdict)
	// DecideUpTo charges as much of the counters' cost as fits into all of them. The cost is the
	// same for all. It sets their Cost to what it decided over: as much as fits, or 1 if nothing
	// does.
	DecideUpTo(ctx context.Context, counters []algorithm.Counter, verdicts []algorithm.Verdict)
	// Reserve takes a turn at a bucket, if it comes within patience, in microseconds.
	Reserve(ctx context.Context, c *algorithm.Counter, patience int64) algorithm.Verdict
	// GiveBack gives charges back, as far as they still count, also after the context has ended.
	GiveBack(ctx context.Context, charges []algorithm.Charge) error
	// RefundsLost returns how many permits may have counted still, but were not given back.
	RefundsLost() uint64
	// Renew keeps the slots of a call in flight for another window each.
	Renew(ctx context.Context, slots []algorithm.Charge) error
	// Records returns the calls that count in a log now, newest first.
	Records(ctx context.Context, key []byte, limit *algorithm.Limit) ([]algorithm.Record, error)
	// Ban bans a subject by hand, for span microseconds. It returns when the ban ends, in
	// microseconds since the epoch, and whether that is later than before. The key is that of its ban.
	Ban(ctx context.Context, key []byte, span int64) (ends int64, changed bool, err error)
	// Reset forgets keys of one subject, and reports whether any was there.
	Reset(ctx context.Context, keys ...[]byte) (changed bool, err error)
	// InBackground runs a task that nobody waits for, except Close.
	InBackground(do func())
	// Close ends what runs in the background.
	Close()
}

// New returns a Limiter. It does not connect, so a service starts while its Redis is down. The
// error is a *[RuleError].
func New(options Options) (*Limiter, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	ips, err := options.ClientIP.compile()
	if err != nil {
		return nil, err
	}
	references := reference.New(options.ReferenceKeys)
	options.ClientIP, options.ReferenceKeys = ClientIP{}, nil // nobody reads them any more
	l := &Limiter{
		keyHead: rediskey.Head(options.Prefix), clientIPs: ips, options: options, references: references,
		operatorLog: operatorlog.New(options.Logger), maxOverrides: overrides.Most,
	}
	l.bans.seen = banlist.NewSightings(l.listBans, func(do func()) { l.store.InBackground(do) }, l.operatorLog.Panicked)
	l.calls.New = func() any {
		return &call{
			limiter: l, inspects: true, id: l.callIDs.Add(1) << 32, place: l.tallies.NewPlace(),
			headers: limitheader.Writer{Style: limitheader.Style(l.options.Headers), BindsMore: bindsMore},
		}
	}
	l.directs.New = func() any { return newDirectCall(l) }
	switch client := options.Redis; {
	case client == nil:
		l.countInProcess()
	case reflect.ValueOf(client).Kind() == reflect.Pointer && reflect.ValueOf(client).IsNil():
		return nil, &RuleError{Field: "Options.Redis", Value: fmt.Sprintf("(%T)(nil)", client), Why: "must be a client, or unset"}
	default:
		l.countInRedis()
	}
	l.inFlight = inflight.New(l.store, &l.refunds, &l.failures, l.operatorLog)
	l.thresholds = l.newThresholds()
	l.tallies = tally.New(OtherNames, string(Allowed), string(l.source), l.tops)
	l.registry.tallies, l.registry.log = l.tallies, l.operatorLog
	l.registry.identifies, l.registry.reports = options.Identify != nil, options.OnThreshold != nil
	l.registry.startBanWatch, l.registry.writeChange = l.startBanWatch, l.rulesChanged
	l.logEngine()
	return l, nil
}

func (l *Limiter) countInProcess() {
	l.memory = memstore.New(l.options.MaxKeys, nil)
	l.memory.OnPanic(l.operatorLog.Panicked)
	l.store, l.source = l.memory, FromMemory
	l.audits.trail = new(audit.Ring)
	l.tops = l.newTops(toplist.NewMemory())
	l.bans.list = banlist.NewMemory(l.memory, banlist.Most)
	l.keyHead = "" // nobody else writes to this process's table
}

func (l *Limiter) countInRedis() {
	options := &l.options
	l.redis = redisstore.New(options.Redis, options.Timeout)
	l.redis.Listen(l.operatorLog)
	l.redis.WatchMemory(l.keyHead)
	if !options.OneKeyPerScript {
		l.redis.JoinKeys(l.keyHead)
	}
	l.local = localfirst.New(l.redis, options.Timeout, options.MaxKeys)
	l.store, l.source = l.local, FromRedis
	l.audits.trail = audit.NewStream(l.redis, options.Prefix)
	l.tops = l.newTops(toplist.NewRedis(l.redis, l.keyHead))
	l.bans.list = banlist.NewIndex(l.redis, l.keyHead, banlist.Most)
	l.banWatch = banwatch.New(l.local.Bans, l.redis, l.keyHead, l.bans.list, l.registry.names.obeying, l.banWatchOff.isOff, l.banWatchFailed)
}

// made reports whether New made the Limiter.
func (l *Limiter) made() bool { return l != nil && l.store != nil }

// mustBeMade panics unless New made the Limiter.
func (l *Limiter) mustBeMade() {
	if !l.made() {
		panic(errNoLimiter)
	}
}

// IPSubject returns the subject by which this Limiter's rules count an address. It is like the
// function [IPSubject], but groups IPv6 addresses by the Limiter's own ClientIP.IPv6Prefix.
func (l *Limiter) IPSubject(addr netip.Addr) string {
	l.mustBeMade()
	return l.clientIPs.Subject(addr)
}

// logEngine logs where counts are kept, because a service that was given no Redis by mistake seems
// to work.
func (l *Limiter) logEngine() {
	if l.source == FromMemory {
		l.options.Logger.Info("accesslimit: no Redis here: counts stay in this process")
	} else {
		l.options.Logger.Info("accesslimit: counts are in Redis", slog.String("prefix", l.options.Prefix))
	}
}

// Close ends the work in the background: sweeping, reading the lists of bans, renewing the slots of
// calls in flight, reporting thresholds, giving back charges and leases, and adding to the lists of
// [Limiter.Top], for at most Timeout each. The Redis client stays open. Call Close when no call is
// in flight any more. Slots that are held then, or taken later, are free after their Window, though
// their calls go on.
func (l *Limiter) Close() {
	l.mustBeMade()
	l.inFlight.Close()
	l.tops.Close()
	l.bans.seen.Close()
	l.closeBanWatch()
	if l.thresholds != nil {
		l.thresholds.Close(l.options.Timeout)
	}
	l.store.Close()
	l.operatorLog.Close()
}
