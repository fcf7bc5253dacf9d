// Package promlimit exports the metrics of a limiter to Prometheus.
//
//	limiter, err := core.New(core.Options{Redis: rdb})
//	prometheus.MustRegister(promlimit.NewCollector(limiter, promlimit.Options{}))
//
// The metrics are the counts of [core.Limiter.Stats], read at each scrape, so calls pay nothing for
// them. The folder also has a dashboard for Grafana and alert rules, and core/OPERATING.md explains
// both.
//
// Every metric has the label limiter. The other labels are names that the service chose, and a few
// constants. Subjects are never labels, so the number of series does not grow with the number of
// callers. At most 4,000 names of rules and 1,000 of handles are shown. The others, and routes that
// callers may have made up, are shown together as core.OtherNames.
package promlimit

import (
	"net"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/accesslimit/accesslimit/core"
)

// Options are the settings of a collector.
type Options struct {
	// Name is the value of the label limiter of all metrics. It distinguishes the limiters of a
	// process: a registry refuses a second collector with the same Name. Default: "default".
	Name string
}

// NewCollector returns a collector of a limiter's metrics. It is safe for concurrent use. It panics
// if the limiter is nil.
func NewCollector(limiter *core.Limiter, options Options) prometheus.Collector {
	if limiter == nil {
		panic("promlimit: the limiter is nil")
	}
	if options.Name == "" {
		options.Name = "default"
	}
	return &collector{limiter, newDescs(prometheus.Labels{"limiter": options.Name})}
}

type collector struct {
	limiter *core.Limiter
	descs
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.limiter.Stats()
	c.collectDecisions(ch, s.Decisions)
	c.collectDryRuns(ch, &s)
	c.collectStore(ch, &s)
	c.collectCosts(ch, s.Costs)
	c.collectOutgoing(ch, s.Outgoing)
	c.collectRules(ch, s.RuleSets)
	gauge(ch, c.keys, float64(s.Keys))
	counter(ch, c.evictions, s.Evictions)
}

func (c *collector) collectDecisions(ch chan<- prometheus.Metric, decisions []core.DecisionCount) {
	for _, d := range decisions {
		labels := []string{d.Rule, string(d.Reason), string(d.Source)}
		counter(ch, c.decisions, d.Count, labels...)
		counter(ch, c.calls, d.Bound, labels...)
		switch d.Reason {
		case core.Allowed:
			counter(ch, c.near, d.Near, d.Rule, string(d.Source))
		case core.DryRunExceeded:
			counter(ch, c.refusedAlready, d.Refused, d.Rule, string(d.Source))
		}
	}
}

func (c *collector) collectDryRuns(ch chan<- prometheus.Metric, s *core.Stats) {
	if len(s.DryRuns) == 0 {
		return
	}
	for rule, delays := range s.DryRuns {
		counter(ch, c.tried, delays.Count, rule)
		ch <- prometheus.MustNewConstMetric(c.triedDelay, prometheus.CounterValue, delays.Sum, rule)
		counter(ch, c.triedDropped, s.DryRunsDropped[rule], rule)
	}
	gauge(ch, c.triedNow, float64(s.DryRunsNow))
}

func (c *collector) collectStore(ch chan<- prometheus.Metric, s *core.Stats) {
	if s.StoreTime.Bounds == nil { // without Redis
		return
	}
	counter(ch, c.trips, s.Trips)
	counter(ch, c.storeCalls, s.Calls)
	counter(ch, c.merged, s.Merged)
	counter(ch, c.losses, s.Losses)
	ch <- histogram(c.duration, &s.StoreTime)
	for class, count := range s.StoreErrors {
		counter(ch, c.errors, count, string(class))
	}
	for _, shard := range s.Shards {
		host, port := splitAddr(shard.Addr)
		for _, state := range [...]string{"closed", "half-open", "open"} {
			gauge(ch, c.breaker, oneIf(shard.Breaker == state), host, port, state)
		}
		counter(ch, c.breakerOpened, shard.Opened, host, port)
	}
}

func (c *collector) collectCosts(ch chan<- prometheus.Metric, rules []core.CostStats) {
	for _, of := range rules {
		counter(ch, c.opened, of.Opened, of.Rule)
		counter(ch, c.settled, of.Settled, of.Rule)
		counter(ch, c.unknown, of.Unknown, of.Rule)
		counter(ch, c.estimated, of.Estimated, of.Rule)
		counter(ch, c.settledEstimates, of.SettledEstimates, of.Rule)
		counter(ch, c.used, of.Used, of.Rule)
		counter(ch, c.debtExceeded, of.DebtExceeded, of.Rule)
	}
}

func (c *collector) collectOutgoing(ch chan<- prometheus.Metric, rules []core.OutgoingStats) {
	for _, of := range rules {
		counter(ch, c.refusals, of.Refused, of.Rule)
		counter(ch, c.pauses, of.Pauses, of.Rule)
		counter(ch, c.waits, of.Waited, of.Rule)
		ch <- prometheus.MustNewConstMetric(c.waitTime, prometheus.CounterValue, of.WaitTime.Seconds(), of.Rule)
		gauge(ch, c.waiting, float64(of.Waiting), of.Rule)
	}
}

func (c *collector) collectRules(ch chan<- prometheus.Metric, sets []core.RuleSetStats) {
	for i, set := range sets {
		number := strconv.Itoa(i + 1)
		gauge(ch, c.rulesInfo, 1, number, set.Version, set.Document, set.Digest)
		gauge(ch, c.rulesLoaded, float64(set.Since.UnixMicro())/1e6, number)
		gauge(ch, c.rulesFailed, oneIf(set.Problem == "wrong"), number)
		gauge(ch, c.rulesUnread, oneIf(set.Problem == "unread"), number)
		gauge(ch, c.rulesLost, oneIf(set.Problem == "lost"), number)
		gauge(ch, c.rulesFallback, oneIf(set.Fallback), number)
	}
}

func counter(ch chan<- prometheus.Metric, desc *prometheus.Desc, n uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
}

func gauge(ch chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// histogram returns the histogram in the form of Prometheus, in which each bucket includes the
// lower ones.
func histogram(desc *prometheus.Desc, h *core.Histogram) prometheus.Metric {
	buckets, sum := make(map[float64]uint64, len(h.Bounds)), uint64(0)
	for i, bound := range h.Bounds {
		sum += h.Counts[i]
		buckets[bound] = sum
	}
	return prometheus.MustNewConstHistogram(desc, h.Count, h.Sum, buckets)
}

// splitAddr splits the address of a server into host and port. A master that Sentinel names has no
// port.
func splitAddr(addr string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, ""
	}
	return host, port
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
