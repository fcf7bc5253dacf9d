package otellimit

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are the metrics of a limiter, except the store time, which no instrument can observe.
type instruments struct {
	decisions, calls, near                       metric.Int64ObservableCounter
	tried, triedDropped, refusedAlready          metric.Int64ObservableCounter
	evictions, trips, storeCalls, merged, losses metric.Int64ObservableCounter
	errors, breakerOpened                        metric.Int64ObservableCounter
	opened, settled, unknown                     metric.Int64ObservableCounter
	estimated, settledEstimates, used            metric.Int64ObservableCounter
	debtExceeded, refusals, pauses, waits        metric.Int64ObservableCounter
	waitTime, triedDelay                         metric.Float64ObservableCounter
	keys, breaker, waiting, triedNow             metric.Int64ObservableUpDownCounter
	rulesInfo, rulesFailed                       metric.Int64ObservableGauge
	rulesUnread, rulesLost, rulesFallback        metric.Int64ObservableGauge
	rulesLoaded                                  metric.Float64ObservableGauge
}

// maker makes instruments, and collects the errors.
type maker struct {
	metric.Meter
	all  []metric.Observable
	errs []error
}

func (m *maker) counter(name, unit, text string) metric.Int64ObservableCounter {
	c, err := m.Int64ObservableCounter("accesslimit."+name, metric.WithUnit(unit), metric.WithDescription(text))
	m.all, m.errs = append(m.all, c), append(m.errs, err)
	return c
}

func (m *maker) upDown(name, unit, text string) metric.Int64ObservableUpDownCounter {
	c, err := m.Int64ObservableUpDownCounter("accesslimit."+name, metric.WithUnit(unit), metric.WithDescription(text))
	m.all, m.errs = append(m.all, c), append(m.errs, err)
	return c
}

func (m *maker) seconds(name, text string) metric.Float64ObservableCounter {
	c, err := m.Float64ObservableCounter("accesslimit."+name, metric.WithUnit("s"), metric.WithDescription(text))
	m.all, m.errs = append(m.all, c), append(m.errs, err)
	return c
}

func (m *maker) gauge(name, text string) metric.Int64ObservableGauge {
	g, err := m.Int64ObservableGauge("accesslimit."+name, metric.WithDescription(text))
	m.all, m.errs = append(m.all, g), append(m.errs, err)
	return g
}

// makeInstruments makes the instruments, and returns all of them.
func (i *instruments) makeInstruments(meter metric.Meter) ([]metric.Observable, error) {
	m := &maker{Meter: meter}
	i.decisions = m.counter("decisions", "{decision}", "Decisions of each rule that took part in a call.")
	i.calls = m.counter("calls", "{call}", "Calls that were answered with the decision of a rule.")
	i.near = m.counter("near_limit", "{call}", "Calls that a rule allowed, after which at least 80 % of its limit was in use.")
	i.tried = m.counter("dry_run.decided", "{call}", "Calls that a rule in DryRun decided.")
	i.triedDelay = m.seconds("dry_run.delay", "Sum of the times from the answer to these calls until then.")
	i.triedDropped = m.counter("dry_run.dropped", "{call}", "Calls that a rule in DryRun did not decide, because too many were waiting.")
	i.triedNow = m.upDown("dry_run.now", "{call}", "Calls that rules in DryRun decide now, or for which they settle or give something back.")
	i.refusedAlready = m.counter("dry_run.refused_already", "{call}", "Calls that a rule in DryRun would have refused, and that a rule in force refused.")
	i.keys = m.upDown("keys", "{key}", "Counters that this process keeps.")
	i.evictions = m.counter("evictions", "{key}", "Counters that were forgotten although they still counted, because there were too many.")
	i.trips = m.counter("store.trips", "{trip}", "Round trips to Redis that decided calls.")
	i.storeCalls = m.counter("store.calls", "{call}", "Calls in these round trips.")
	i.merged = m.counter("store.merged_calls", "{call}", "Calls that shared the script call of another on the same counters.")
	i.losses = m.counter("store.losses", "{loss}", "Times that a server was found to have lost all of its data, or the latest writes.")
	i.errors = m.counter("store.errors", "{error}", "Failures of Redis to answer, by their class.")
	i.breaker = m.upDown("breaker.state", "{breaker}", "1 for the state that the breaker of a server is in, 0 for the others. No calls are made while it is open.")
	i.breakerOpened = m.counter("breaker.opened", "{time}", "Times that the breaker of a server opened.")
	i.opened = m.counter("bills.opened", "{bill}", "Bills that were opened.")
	i.settled = m.counter("bills.settled", "{bill}", "Bills that were settled.")
	i.unknown = m.counter("bills.unknown", "{bill}", "Settlements that changed nothing, because the bill had expired, the reply had ended, or Redis had lost the bill.")
	i.estimated = m.counter("bills.estimated_permits", "{permit}", "Permits that bills were charged when they were opened.")
	i.settledEstimates = m.counter("bills.settled_estimated_permits", "{permit}", "Permits that the settled bills were charged when they were opened.")
	i.used = m.counter("bills.used_permits", "{permit}", "Permits that the settled bills used in all.")
	i.debtExceeded = m.counter("debt_exceeded_permits", "{permit}", "Permits that were not charged, because they exceed the bound of a debt.")
	i.refusals = m.counter("outgoing.refusals", "{call}", "Calls that a server refused because of a limit.")
	i.pauses = m.counter("outgoing.pauses", "{pause}", "Pauses that this process began or made longer, because a server asked for them.")
	i.waits = m.counter("outgoing.waits", "{call}", "Calls that had to wait before they were sent, or given up.")
	i.waitTime = m.seconds("outgoing.wait", "Sum of these waits.")
	i.waiting = m.upDown("outgoing.waiting", "{call}", "Calls that wait now, or are just asking for their turn.")
	i.rulesInfo = m.gauge("rules.info", "1 for the version of a set of rules that is in force. Sets with one document and one digest have the same rules.")
	i.rulesFailed = m.gauge("rules.failed", "1 if the newest version of a set of rules is wrong, 0 otherwise.")
	i.rulesUnread = m.gauge("rules.unread", "1 if it is not known which version of a set of rules is the newest, because Redis or a file cannot be read, 0 otherwise.")
	i.rulesLost = m.gauge("rules.lost", "1 if Redis has lost the document with the rules in force, 0 otherwise.")
	i.rulesFallback = m.gauge("rules.fallback", "1 if the rules of a fallback are in force, 0 otherwise.")
	loaded, err := m.Float64ObservableGauge("accesslimit.rules.loaded.timestamp", metric.WithUnit("s"),
		metric.WithDescription("When the version in force was taken up, since the epoch."))
	i.rulesLoaded, m.all = loaded, append(m.all, loaded)
	return m.all, errors.Join(append(m.errs, err)...)
}
