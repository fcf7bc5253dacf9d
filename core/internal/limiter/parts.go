package limiter

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/abandoned"
	"github.com/accesslimit/accesslimit/core/internal/audit"
	"github.com/accesslimit/accesslimit/core/internal/background"
	"github.com/accesslimit/accesslimit/core/internal/clientip"
	"github.com/accesslimit/accesslimit/core/internal/clock"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
	"github.com/accesslimit/accesslimit/core/internal/localfirst"
	"github.com/accesslimit/accesslimit/core/internal/losses"
	"github.com/accesslimit/accesslimit/core/internal/marks"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/notices"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/pauses"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/core/internal/reference"
	"github.com/accesslimit/accesslimit/core/internal/refund"
	"github.com/accesslimit/accesslimit/core/internal/toplist"
)

// Config is what a limiter is made of. All of it has been checked.
type Config struct {
	Client          redis.UniversalClient // nil to count in this process
	Prefix          string
	Timeout         time.Duration
	OneKeyPerScript bool
	MaxKeys         int
	Logger          *slog.Logger
	ClientIPs       *clientip.Finder
	References      reference.Keys // none unless refusals have references
}

// Parts are the parts of a limiter. Only tests change them once the limiter is made.
type Parts struct {
	Config
	Log *operatorlog.Log

	// KeyHead is the beginning of all keys.
	KeyHead string
	Store   Store
	Local   *localfirst.Store // Store itself if there is Redis, otherwise nil
	Redis   *redisstore.Store // what Local asks; nil without Redis
	Memory  *memstore.Store   // Store itself if there is no Redis, otherwise nil

	Engine   engine.Engine
	CallIDs  atomic.Uint64 // the number of IDs given to calls
	InFlight *inflight.Keeper
	Behind   *inflight.Queue // of rules in DryRun
	Unused   *abandoned.Turns
	Refunds  refund.Ledger
	Failures failure.Counts // failures of the store to answer

	Board  notices.Board // for reports of reached thresholds
	Tops   *toplist.Table
	Marks  *marks.Set
	Pauses *pauses.Pauses
	Audits *audit.Recorder
	Losses *losses.List // nil without Redis
	clock  clock.Clock  // by which marks end
}

// Assemble makes the store and what depends on it. compile is [Front].CompileLimits.
func (p *Parts) Assemble(compile func(limits string) (any, error)) {
	p.clock.Start()
	p.Behind = inflight.NewQueue(p.Client == nil, p.Log.Panicked)
	if p.Client == nil {
		p.countInProcess()
	} else {
		p.countInRedis()
	}
	p.Marks = marks.NewSet(marks.Options{
		Redis: p.Redis, Prefix: p.Prefix, Now: p.now, SinceEpoch: p.sinceEpoch, Compile: compile, Calls: p.calls, Log: p.Log, Most: marks.Most, MostBans: marks.MostBans,
	})
}

// calls returns how many calls Redis has decided so far.
func (p *Parts) calls() uint64 {
	_, calls, _ := p.Redis.Trips()
	return calls
}

// now returns the time by which marks end, in microseconds.
func (p *Parts) now() int64 {
	if p.Memory != nil {
		return p.Memory.Passed()
	}
	return p.clock.Awake() / 1000 // a jump of this process's wall clock says nothing about that of Redis
}

// sinceEpoch returns the time at which marks begin and end without Redis.
func (p *Parts) sinceEpoch() int64 { return p.Memory.Now() }

func (p *Parts) countInProcess() {
	p.Memory = memstore.New(p.MaxKeys, nil)
	p.Memory.OnPanic(p.Log.Panicked)
	p.KeyHead = "" // nobody else writes to this process's table
	p.Ask(p.Memory, nil)
	p.Board = notices.Memory{Store: p.Memory}
	p.Pauses = pauses.New(pauses.NewTable(), nil, p.Memory, p.KeyHead, p.Tasks(), p.Log)
	p.observe(toplist.NewMemory(), new(audit.Ring))
}

func (p *Parts) countInRedis() {
	p.KeyHead = rediskey.Head(p.Prefix)
	p.Redis = redisstore.New(p.Client, p.Timeout)
	p.Losses = losses.New(p.Redis, p.Prefix)
	p.Redis.Listen(listener{p.Log, p})
	p.Redis.WatchMemory(p.KeyHead)
	if !p.OneKeyPerScript {
		p.Redis.JoinKeys(p.KeyHead)
	}
	p.Local = localfirst.New(p.Redis, p.Timeout, p.MaxKeys)
	p.Ask(p.Local, p.Local)
	p.Local.DropUnconfirmedBy(p.InFlight.DropUnconfirmedSlots)
	p.Board = notices.Redis{Store: p.Redis}
	p.Pauses = pauses.New(p.Local.Pauses, p.Redis, nil, p.KeyHead, p.Tasks(), p.Log)
	p.observe(toplist.NewRedis(p.Redis, p.KeyHead), audit.NewStream(p.Redis, p.Prefix))
}

// listener logs what a store reports, and records losses for all processes.
type listener struct {
	*operatorlog.Log
	parts *Parts
}

// Lost implements redisstore.Listener.
func (l listener) Lost(loss redisstore.Loss) {
	l.Log.Lost(loss.Addr, loss.Lost, loss.How)
	l.parts.Redis.InBackground(func() {
		if err := l.parts.Losses.Record(context.Background(), loss); err != nil {
			l.LossUnrecorded(err)
		}
	})
}

// Ask sets the store that calls ask. If refusals is not nil, it remembers those of the store.
func (p *Parts) Ask(store Store, refusals engine.Refusals) {
	p.Store = store
	p.InFlight = inflight.New(store, &p.Refunds, &p.Failures, p.Log)
	p.Unused = abandoned.New(store, p.Log.Panicked)
	p.Engine = engine.Engine{Store: store, Refusals: refusals, KeyHead: p.KeyHead, Slots: p.InFlight, Turns: p.Unused}
	if p.Local != nil {
		p.Engine.StandIn = p.Local.StandIn
	}
}

// observe makes the parts that record what calls notice and what operators do.
func (p *Parts) observe(slots toplist.Slots, trail audit.Trail) {
	p.Tops = toplist.New(slots, p.Store.InBackground, p.Log)
	p.Audits = audit.NewRecorder(trail, p.Tasks(), p.Logger, p.Log)
}

// Tasks returns the Runner for the tasks of an operator's act.
func (p *Parts) Tasks() background.Runner {
	return background.Runner{Start: p.Store.InBackground, Patience: p.Timeout}
}

// Close ends what runs in the background.
func (p *Parts) Close() {
	p.InFlight.Close()
	p.Unused.Close()
	p.Tops.Close()
	p.Marks.Close()
	p.Store.Close()
	p.Log.Close()
}
