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
	"github.com/accesslimit/accesslimit/core/internal/background"
	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/banwatch"
	"github.com/accesslimit/accesslimit/core/internal/clientip"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
	"github.com/accesslimit/accesslimit/core/internal/knownbans"
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
	"github.com/accesslimit/accesslimit/core/internal/thresholds"
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
	references  references
	options     Options
	operatorLog *operatorlog.Log
	engine      engine.Engine
	calls       sync.Pool // of *call
	directs     sync.Pool // of *directCall
	tallies     *tally.Table
	registry    registry
	operations  *operations
	bans        *banlist.Bans
	tops        *toplist.Table
	banWatch    *banwatch.Watch          // nil without Redis
	thresholds  *thresholds.Watch[Limit] // nil without Options.OnThreshold
	failures    *storeFailures
	refunds     refund.Ledger
	inFlight    *inflight.Keeper
	outerCalls  outercall.Calls
	callIDs     atomic.Uint64
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
	made := references{reference.New(options.ReferenceKeys)}
	options.ClientIP, options.ReferenceKeys = ClientIP{}, nil // nobody reads them any more
	l := &Limiter{
		keyHead: rediskey.Head(options.Prefix), clientIPs: ips, options: options, references: made,
		operatorLog: operatorlog.New(options.Logger),
	}
	l.failures = &storeFailures{log: l.operatorLog}
	l.calls.New = func() any {
		return newCall(l)
	}
	l.directs.New = func() any { return newDirectCall(l) }
	switch client := options.Redis; {
	case client == nil:
		l.countInProcess(nil)
	case reflect.ValueOf(client).Kind() == reflect.Pointer && reflect.ValueOf(client).IsNil():
		return nil, &RuleError{Field: "Options.Redis", Value: fmt.Sprintf("(%T)(nil)", client), Why: "must be a client, or unset"}
	default:
		l.countInRedis()
	}
	l.inFlight = inflight.New(l.store, &l.refunds, &l.failures.Counts, l.operatorLog)
	l.registry.log, l.registry.identifies, l.registry.reports = l.operatorLog, options.Identify != nil, options.OnThreshold != nil
	l.registry.startBanWatch = l.banWatch.Start
	l.engine = engine.Engine{KeyHead: l.keyHead, Slots: l.inFlight, Store: l.store}
	if l.local != nil {
		l.engine.Memory = l.local
	}
	l.logEngine()
	return l, nil
}

// countInProcess makes the parts of a Limiter without Redis. now is the clock, in microseconds since
// the epoch, or nil for the machine's.
func (l *Limiter) countInProcess(now func() int64) {
	l.memory = memstore.New(l.options.MaxKeys, now)
	l.memory.OnPanic(l.operatorLog.Panicked)
	l.store, l.source = l.memory, FromMemory
	l.keyHead = "" // nobody else writes to this process's table
	l.observe(notices.Memory{Store: l.memory}, toplist.NewMemory(), banlist.NewMemory(l.memory, banlist.Most), nil)
	l.operate(new(audit.Ring), nil)
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
	bans := banlist.NewIndex(l.redis, l.keyHead, banlist.Most)
	l.banWatch = banwatch.New(l.local.Bans, l.redis, l.keyHead, bans, l.registry.names.obeying, l.operatorLog)
	l.observe(notices.Redis{Store: l.redis}, toplist.NewRedis(l.redis, l.keyHead), bans, l.redis.Operate)
	l.operate(audit.NewStream(l.redis, options.Prefix), l.local.Bans)
}

// observe makes the parts that are passed what is noticed on the way of a call.
func (l *Limiter) observe(board notices.Board, slots toplist.Slots, bans banlist.List, within banlist.Within) {
	l.bans = banlist.New(bans, within, l.tasks(), l.operatorLog)
	l.tops = toplist.New(slots, l.store.InBackground, l.operatorLog)
	l.tallies = tally.New(OtherNames, string(Allowed), string(l.source), l.tops)
	l.registry.tallies = l.tallies
	if report := thresholdReports(l.options.OnThreshold); report != nil {
		l.thresholds = thresholds.New(board, l.keyHead, l.operatorLog, report)
	}
}

// operate makes what operators use.
func (l *Limiter) operate(trail audit.Trail, known *knownbans.Table) {
	l.operations = &operations{
		store: l.store, keyHead: l.keyHead, names: &l.registry.names, failures: l.failures, log: l.operatorLog, tasks: l.tasks(),
		audits: audit.NewRecorder(trail, l.tasks(), l.options.Logger, l.operatorLog), bans: l.bans, known: known, tops: l.tops,
		overrides: overrides.Tables{Redis: l.redis, KeyHead: l.keyHead, Memory: l.memory, Most: overrides.Most},
	}
	l.registry.writeChange = l.operations.audits.RulesChanged
}

// tasks runs what belongs to an operator's act.
func (l *Limiter) tasks() background.Runner {
	return background.Runner{Start: l.store.InBackground, Patience: l.options.Timeout}
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

// Stats returns the counts of the Limiter so far. It is safe for concurrent use and cheap enough to
// be called every second; calls do not wait for it. Counts are exact, but each is read at its own
// moment: a call that is being decided may be in one and not yet in another.
//
// With expvar, one line shows all of it:
//
//	expvar.Publish("accesslimit", expvar.Func(func() any { return limiter.Stats() }))
//
// The modules promlimit and otellimit show them to Prometheus and OpenTelemetry.
func (l *Limiter) Stats() Stats {
	l.mustBeMade()
	s := Stats{StoreErrors: l.failures.stats(), RuleSets: l.registry.sets.stats()}
	s.readDecisions(l.tallies.Snapshot())
	s.readStore(l.store)
	if l.redis != nil {
		s.readRedis(l.redis)
	}
	return s
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
	l.bans.Close()
	l.banWatch.Close()
	l.thresholds.Close(l.options.Timeout)
	l.store.Close()
	l.operatorLog.Close()
}
