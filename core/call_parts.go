package core

import (
	"sync/atomic"

	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/clientip"
	"github.com/accesslimit/accesslimit/core/internal/engine"
	"github.com/accesslimit/accesslimit/core/internal/inflight"
	"github.com/accesslimit/accesslimit/core/internal/operatorlog"
	"github.com/accesslimit/accesslimit/core/internal/reference"
	"github.com/accesslimit/accesslimit/core/internal/refund"
	"github.com/accesslimit/accesslimit/core/internal/tally"
	"github.com/accesslimit/accesslimit/core/internal/thresholds"
)

// callParts are the parts of a limiter that its calls use: those of middlewares and those of
// handles. They do not change once the limiter is made.
type callParts struct {
	engine     *engine.Engine
	ids        *atomic.Uint64 // how many calls have got an ID
	source     Source         // where the limiter keeps its counters
	options    Options
	log        *operatorlog.Log
	failures   *storeFailures
	tallies    *tally.Table
	bans       *banlist.Bans
	refunds    *refund.Ledger
	limits     *limitCache
	clientIPs  *clientip.Finder
	references reference.Keys           // none unless refusals have references
	thresholds *thresholds.Watch[Limit] // nil without Options.OnThreshold
	inFlight   *inflight.Keeper
}
