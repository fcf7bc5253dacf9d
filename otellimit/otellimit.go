// Package otellimit exports the metrics of a limiter to OpenTelemetry, and sets attributes of the
// current span.
//
//	var storeTime otellimit.StoreTime
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(&storeTime))
//	provider := metric.NewMeterProvider(metric.WithReader(reader))
//
//	limiter, err := core.New(core.Options{Redis: rdb, OnDecision: otellimit.SetAttributes})
//	...
//	_, err = otellimit.Observe(limiter, otellimit.Options{MeterProvider: provider, StoreTime: &storeTime})
//
// The metrics are the counts of [core.Limiter.Stats], read whenever metrics are collected, so calls
// pay nothing for them. They have the names of package promlimit in the form of OpenTelemetry. So
// if they reach Prometheus, the dashboard and the alert rules of promlimit work for them too, as
// core/OPERATING.md explains.
//
// Every metric has the attribute accesslimit.limiter. The other attributes are names that the
// service chose, and a few constants. Subjects are never attributes, neither of metrics nor of
// spans, so the number of series does not grow with the number of callers. At most 4,000 names of
// rules and 1,000 of handles are shown. The others, and routes that callers may have made up, are
// shown together as core.OtherNames.
package otellimit

import (
	"context"
	"errors"
	"net"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/accesslimit/accesslimit/core"
)

// scope is the name of the instrumentation scope.
const scope = "github.com/accesslimit/accesslimit/otellimit"

// Options are the settings of Observe.
type Options struct {
	// Name is the value of the attribute accesslimit.limiter of all metrics. It distinguishes the
	// limiters of a process, so each needs a different one. Default: "default".
	Name string
	// MeterProvider makes the instruments. Default: the result of otel.GetMeterProvider.
	MeterProvider metric.MeterProvider
	// StoreTime, if set, shows how long calls wait for Redis. Default: nil.
	StoreTime *StoreTime
}

// Observe exports the metrics of a limiter until Unregister is called on the Registration. It
// returns an error if the limiter is nil or the MeterProvider fails.
func Observe(limiter *core.Limiter, options Options) (metric.Registration, error) {
	if limiter == nil {
		return nil, errors.New("otellimit: the limiter is nil")
	}
	if options.Name == "" {
		options.Name = "default"
	}
	if options.MeterProvider == nil {
		options.MeterProvider = otel.GetMeterProvider()
	}
	o := &observer{limiter: limiter, name: attribute.String("accesslimit.limiter", options.Name)}
	meter := options.MeterProvider.Meter(scope)
	all, err := o.makeInstruments(meter)
	if err != nil {
		return nil, err
	}
	registration, err := meter.RegisterCallback(o.observe, all...)
	if err != nil || options.StoreTime == nil {
		return registration, err
	}
	remove := options.StoreTime.add(limiter, o.name)
	return &withStoreTime{Registration: registration, remove: remove}, nil
}

// withStoreTime is the registration of a limiter whose store time is shown too.
type withStoreTime struct {
	metric.Registration
	remove func()
}

// Unregister implements metric.Registration.
func (r *withStoreTime) Unregister() error {
	r.remove()
	return r.Registration.Unregister()
}

// observer observes the counts of a limiter.
type observer struct {
	limiter *core.Limiter
	name    attribute.KeyValue
	instruments
}

func (o *observer) observe(_ context.Context, to metric.Observer) error {
	s := o.limiter.Stats()
	o.observeDecisions(to, s.Decisions)
	o.observeDryRuns(to, &s)
	o.observeStore(to, &s)
	o.observeCosts(to, s.Costs)
	o.observeOutgoing(to, s.Outgoing)
	o.observeRules(to, s.RuleSets)
	to.ObserveInt64(o.keys, int64(s.Keys), o.with())
	to.ObserveInt64(o.evictions, int64(s.Evictions), o.with())
	return nil
}

func (o *observer) observeDecisions(to metric.Observer, decisions []core.DecisionCount) {
	for _, d := range decisions {
		rule, reason, source := ruleKey.String(d.Rule), reasonKey.String(string(d.Reason)), sourceKey.String(string(d.Source))
		to.ObserveInt64(o.decisions, int64(d.Count), o.with(rule, reason, source))
		to.ObserveInt64(o.calls, int64(d.Bound), o.with(rule, reason, source))
		switch d.Reason {
		case core.Allowed:
			to.ObserveInt64(o.near, int64(d.Near), o.with(rule, source))
		case core.DryRunExceeded:
			to.ObserveInt64(o.refusedAlready, int64(d.Refused), o.with(rule, source))
		}
	}
}

func (o *observer) observeDryRuns(to metric.Observer, s *core.Stats) {
	if len(s.DryRuns) == 0 {
		return
	}
	for name, delays := range s.DryRuns {
		rule := o.with(ruleKey.String(name))
		to.ObserveInt64(o.tried, int64(delays.Count), rule)
		to.ObserveFloat64(o.triedDelay, delays.Sum, rule)
		to.ObserveInt64(o.triedDropped, int64(s.DryRunsDropped[name]), rule)
	}
	to.ObserveInt64(o.triedNow, int64(s.DryRunsNow), o.with())
}

func (o *observer) observeStore(to metric.Observer, s *core.Stats) {
	if s.StoreTime.Bounds == nil { // without Redis
		return
	}
	to.ObserveInt64(o.trips, int64(s.Trips), o.with())
	to.ObserveInt64(o.storeCalls, int64(s.Calls), o.with())
	to.ObserveInt64(o.merged, int64(s.Merged), o.with())
	to.ObserveInt64(o.losses, int64(s.Losses), o.with())
	for class, count := range s.StoreErrors {
		to.ObserveInt64(o.errors, int64(count), o.with(attribute.String("error.type", string(class))))
	}
	for _, shard := range s.Shards {
		server := serverOf(shard.Addr)
		for _, state := range [...]string{"closed", "half-open", "open"} {
			to.ObserveInt64(o.breaker, oneIf(shard.Breaker == state), o.with(append(server, attribute.String("accesslimit.state", state))...))
		}
		to.ObserveInt64(o.breakerOpened, int64(shard.Opened), o.with(server...))
	}
}

func (o *observer) observeCosts(to metric.Observer, rules []core.CostStats) {
	for _, of := range rules {
		rule := o.with(ruleKey.String(of.Rule))
		to.ObserveInt64(o.opened, int64(of.Opened), rule)
		to.ObserveInt64(o.settled, int64(of.Settled), rule)
		to.ObserveInt64(o.unknown, int64(of.Unknown), rule)
		to.ObserveInt64(o.estimated, int64(of.Estimated), rule)
		to.ObserveInt64(o.settledEstimates, int64(of.SettledEstimates), rule)
		to.ObserveInt64(o.used, int64(of.Used), rule)
		to.ObserveInt64(o.debtExceeded, int64(of.DebtExceeded), rule)
	}
}

func (o *observer) observeOutgoing(to metric.Observer, rules []core.OutgoingStats) {
	for _, of := range rules {
		rule := o.with(ruleKey.String(of.Rule))
		to.ObserveInt64(o.refusals, int64(of.Refused), rule)
		to.ObserveInt64(o.pauses, int64(of.Pauses), rule)
		to.ObserveInt64(o.waits, int64(of.Waited), rule)
		to.ObserveFloat64(o.waitTime, of.WaitTime.Seconds(), rule)
		to.ObserveInt64(o.waiting, int64(of.Waiting), rule)
	}
}

func (o *observer) observeRules(to metric.Observer, sets []core.RuleSetStats) {
	for i, set := range sets {
		number := attribute.String("accesslimit.set", strconv.Itoa(i+1))
		to.ObserveInt64(o.rulesInfo, 1, o.with(number, attribute.String("accesslimit.version", set.Version),
			attribute.String("accesslimit.document", set.Document), attribute.String("accesslimit.digest", set.Digest)))
		to.ObserveFloat64(o.rulesLoaded, float64(set.Since.UnixMicro())/1e6, o.with(number))
		to.ObserveInt64(o.rulesFailed, oneIf(set.Problem == "wrong"), o.with(number))
		to.ObserveInt64(o.rulesUnread, oneIf(set.Problem == "unread"), o.with(number))
		to.ObserveInt64(o.rulesLost, oneIf(set.Problem == "lost"), o.with(number))
		to.ObserveInt64(o.rulesFallback, oneIf(set.Fallback), o.with(number))
	}
}

// with returns the limiter's name and further attributes.
func (o *observer) with(further ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(further, o.name)...)
}

// serverOf returns the attributes of a server. A master that Sentinel names has no port.
func serverOf(addr string) []attribute.KeyValue {
	host, text, err := net.SplitHostPort(addr)
	port, wrong := strconv.Atoi(text)
	if err != nil || wrong != nil {
		return []attribute.KeyValue{attribute.String("server.address", addr)}
	}
	return []attribute.KeyValue{attribute.String("server.address", host), attribute.Int("server.port", port)}
}

func oneIf(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
