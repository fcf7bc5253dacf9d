package promlimit

import "github.com/prometheus/client_golang/prometheus"

// descs describes the metrics. Package otellimit has the same metrics, under names that
// OpenTelemetry translates into these.
type descs struct {
	decisions, calls, near              *prometheus.Desc
	tried, triedDelay, triedDropped     *prometheus.Desc
	refusedAlready, triedNow            *prometheus.Desc
	keys, evictions                     *prometheus.Desc
	trips, storeCalls, merged, losses   *prometheus.Desc
	duration, errors                    *prometheus.Desc
	breaker, breakerOpened              *prometheus.Desc
	opened, settled, unknown            *prometheus.Desc
	estimated, settledEstimates, used   *prometheus.Desc
	debtExceeded                        *prometheus.Desc
	refusals, pauses                    *prometheus.Desc
	waits, waitTime, waiting            *prometheus.Desc
	rulesInfo, rulesLoaded              *prometheus.Desc
	rulesFailed, rulesUnread, rulesLost *prometheus.Desc
	rulesFallback                       *prometheus.Desc
}

func newDescs(constant prometheus.Labels) descs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("accesslimit_"+name, help, labels, constant)
	}
	return descs{
		decisions: desc("decisions_total", "Decisions of each rule that took part in a call.", "rule", "reason", "source"),
		calls:     desc("calls_total", "Calls that were answered with the decision of a rule.", "rule", "reason", "source"),
		near:      desc("near_limit_total", "Calls that a rule allowed, after which at least 80 % of its limit was in use.", "rule", "source"),

		tried:          desc("dry_run_decided_total", "Calls that a rule in DryRun decided.", "rule"),
		triedDelay:     desc("dry_run_delay_seconds_total", "Sum of the times from the answer to these calls until then.", "rule"),
		triedDropped:   desc("dry_run_dropped_total", "Calls that a rule in DryRun did not decide, because too many were waiting.", "rule"),
		triedNow:       desc("dry_run_now", "Calls that rules in DryRun decide now, or for which they settle or give something back."),
		refusedAlready: desc("dry_run_refused_already_total", "Calls that a rule in DryRun would have refused, and that a rule in force refused.", "rule", "source"),

		keys:      desc("keys", "Counters that this process keeps."),
		evictions: desc("evictions_total", "Counters that were forgotten although they still counted, because there were too many."),

		trips:         desc("store_trips_total", "Round trips to Redis that decided calls."),
		storeCalls:    desc("store_calls_total", "Calls in these round trips."),
		merged:        desc("store_merged_calls_total", "Calls that shared the script call of another on the same counters."),
		losses:        desc("store_losses_total", "Times that a server was found to have lost all of its data, or the latest writes."),
		duration:      desc("store_duration_seconds", "Time that calls waited for Redis."),
		errors:        desc("store_errors_total", "Failures of Redis to answer, by their class.", "error_type"),
		breaker:       desc("breaker_state", "1 for the state that the breaker of a server is in, 0 for the others. No calls are made while it is open.", "server_address", "server_port", "state"),
		breakerOpened: desc("breaker_opened_total", "Times that the breaker of a server opened.", "server_address", "server_port"),

		opened:           desc("bills_opened_total", "Bills that were opened.", "rule"),
		settled:          desc("bills_settled_total", "Bills that were settled.", "rule"),
		unknown:          desc("bills_unknown_total", "Settlements that changed nothing, because the bill had expired, the reply had ended, or Redis had lost the bill.", "rule"),
		estimated:        desc("bills_estimated_permits_total", "Permits that bills were charged when they were opened.", "rule"),
		settledEstimates: desc("bills_settled_estimated_permits_total", "Permits that the settled bills were charged when they were opened.", "rule"),
		used:             desc("bills_used_permits_total", "Permits that the settled bills used in all.", "rule"),
		debtExceeded:     desc("debt_exceeded_permits_total", "Permits that were not charged, because they exceed the bound of a debt.", "rule"),

		refusals: desc("outgoing_refusals_total", "Calls that a server refused because of a limit.", "rule"),
		pauses:   desc("outgoing_pauses_total", "Pauses that this process began or made longer, because a server asked for them.", "rule"),
		waits:    desc("outgoing_waits_total", "Calls that had to wait before they were sent, or given up.", "rule"),
		waitTime: desc("outgoing_wait_seconds_total", "Sum of these waits.", "rule"),
		waiting:  desc("outgoing_waiting", "Calls that wait now, or are just asking for their turn.", "rule"),

		rulesInfo:   desc("rules_info", "1 for the version of a set of rules that is in force. Sets with one document and one digest have the same rules.", "set", "version", "document", "digest"),
		rulesLoaded: desc("rules_loaded_timestamp_seconds", "When the version in force was taken up, since the epoch.", "set"),
		rulesFailed: desc("rules_failed", "1 if the newest version of a set of rules is wrong, 0 otherwise.", "set"),
		rulesUnread: desc("rules_unread", "1 if it is not known which version of a set of rules is the newest, because Redis or a file cannot be read, 0 otherwise.", "set"),
		rulesLost:   desc("rules_lost", "1 if Redis has lost the document with the rules in force, 0 otherwise.", "set"),

		rulesFallback: desc("rules_fallback", "1 if the rules of a fallback are in force, 0 otherwise.", "set"),
	}
}

func (d *descs) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		d.decisions, d.calls, d.near, d.tried, d.triedDelay, d.triedDropped, d.triedNow, d.refusedAlready, d.keys, d.evictions, d.trips, d.storeCalls, d.merged, d.losses,
		d.duration, d.errors, d.breaker, d.breakerOpened,
		d.opened, d.settled, d.unknown, d.estimated, d.settledEstimates, d.used, d.debtExceeded, d.refusals, d.pauses, d.waits, d.waitTime, d.waiting,
		d.rulesInfo, d.rulesLoaded, d.rulesFailed, d.rulesUnread, d.rulesLost, d.rulesFallback,
	}
}

// Describe implements prometheus.Collector.
func (d *descs) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range d.all() {
		ch <- desc
	}
}
