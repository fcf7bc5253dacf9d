package main

import (
	"fmt"
	"math"
	"net"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// result is a result of an expression by its labels, as text returns them.
type result map[string]float64

// over returns a result divided by another with the same labels.
func (r result) over(other result) result {
	quotients := make(result)
	for labels, n := range r {
		quotients[labels] = n / other[labels]
	}
	return quotients
}

// times returns a result with each value multiplied.
func (r result) times(factor float64) result {
	products := make(result)
	for labels, n := range r {
		products[labels] = n * factor
	}
	return products
}

// expected returns what each expression of the dashboard has to give at the last scrape. The first
// ones are known from the load. The others follow from the limiters' Stats, where time or chance
// decide about the numbers.
func (l *load) expected(last time.Time) map[string]result {
	const perStep = 1.0 / 15 // in calls a second
	fallback := l.rate(func(name string, s core.Stats, add func(string, float64)) {
		for _, d := range s.Decisions {
			add("source="+string(d.Source), float64(d.Bound))
		}
	})
	return map[string]result{
		"Calls by rule A":                    {"rule=limited": 12 * perStep, "rule=tried": 0, "rule=memory": 300 * perStep, "rule=open": 2 * perStep, "rule=closed": perStep, "rule=local": perStep, "rule=tokens": 3 * perStep, "rule=api": perStep},
		"Refused by rule and reason A":       {"reason=limit_exceeded rule=limited": 7 * perStep, "reason=store_fail_closed rule=closed": perStep},
		"Share refused by rule A":            {"rule=limited": 7.0 / 12, "rule=closed": 1},
		"Share near the limit A":             {"rule=limited": 2.0 / 5, "rule=tried": 1.0 / 3, "rule=memory": 0, "rule=local": 0, "rule=tokens": 2.0 / 3, "rule=api": 0},
		"Dry runs that would have refused A": {"rule=tried": perStep},
		"Dry runs that would have refused B": {"rule=tried": 0},
		"Calls by source A":                  fallback,
		"Decided without Redis A":            {"reason=store_fail_open rule=open": 2 * perStep, "reason=store_fail_closed rule=closed": perStep},
		"Decided without Redis B":            {"rule=local": perStep},
		"Failures of Redis A":                l.rate(failures),
		"Breakers that are not closed A":     l.breakers(),
		"Time that calls wait A":             {"": l.quantile(0.5)},
		"Time that calls wait B":             {"": l.quantile(0.99)},
		"Calls in a round trip A":            l.rate(calls).over(l.rate(trips)),
		"Redis servers that lost data A":     {"limiter=redis": 0, "limiter=down": 0},
		"Counters in the processes A":        l.keys(),
		"Evictions A":                        l.rate(evictions),
		"Versions of rules A":                {"digest=8 limiter=redis set=1 version=8": 1},
		"Age of rules A":                     {"limiter=redis set=1": last.Sub(l.now("redis").RuleSets[0].Since.Truncate(time.Microsecond)).Seconds()},
		"Rules that are not the latest A":    {"limiter=redis set=1": 1},
		"Rules that are not the latest B":    {"limiter=redis set=1": 0},
		"Rules that are not the latest C":    {"limiter=redis set=1": 0},
		"Rules that are not the latest D":    {"limiter=redis set=1": 0},
		"Bills A":                            {"rule=tokens": 2 * perStep},
		"Bills B":                            {"rule=tokens": perStep},
		"Estimates and use A":                {"rule=tokens": 4 * perStep},
		"Estimates and use B":                {"rule=tokens": 6 * perStep},
		"Costs that are not charged A":       {"rule=tokens": 3 * perStep},
		"Costs that are not charged B":       {"rule=tokens": 0},
		"Refused by servers A":               {"rule=api": perStep},
		"Refused by servers B":               {"rule=api": perStep},
		"Calls that wait to go out A":        {"rule=api": 0},
		"Mean wait to go out A":              {"rule=api": math.NaN()},
	}
}

// now returns the Stats of a limiter after the last step.
func (l *load) now(limiter string) core.Stats { return l.stats[scrapes-1][limiter] }

// rate returns how much numbers grew in a second of the last minute. sum adds the numbers of a
// limiter by their labels.
func (l *load) rate(sum func(name string, s core.Stats, add func(labels string, n float64))) result {
	grown := make(result)
	for name := range l.limiters {
		sum(name, l.stats[scrapes-1][name], func(labels string, n float64) { grown[labels] += n })
		sum(name, l.stats[scrapes-1-window][name], func(labels string, n float64) { grown[labels] -= n })
	}
	return grown.times(1 / (window * every).Seconds())
}

func failures(_ string, s core.Stats, add func(string, float64)) {
	for class, count := range s.StoreErrors {
		add("error_type="+string(class), float64(count))
	}
}

func calls(name string, s core.Stats, add func(string, float64)) {
	if s.StoreTime.Bounds != nil {
		add("limiter="+name, float64(s.Calls))
	}
}

func trips(name string, s core.Stats, add func(string, float64)) {
	if s.StoreTime.Bounds != nil {
		add("limiter="+name, float64(s.Trips))
	}
}

func evictions(name string, s core.Stats, add func(string, float64)) {
	add("limiter="+name, float64(s.Evictions))
}

func (l *load) keys() result {
	found := make(result)
	for name := range l.limiters {
		found["limiter="+name] = float64(l.now(name).Keys)
	}
	return found
}

// breakers returns the state of the two servers: one does not answer.
func (l *load) breakers() result {
	found := make(result)
	for name, n := range map[string]float64{"redis": 0, "down": 1} {
		host, port, _ := net.SplitHostPort(l.now(name).Shards[0].Addr)
		found[fmt.Sprintf("server_address=%s server_port=%s", host, port)] = n
	}
	return found
}

// quantile returns the time that so many calls of the last minute did not exceed, as Prometheus
// estimates it from buckets.
func (l *load) quantile(q float64) float64 {
	var counts []float64
	bounds, all := l.now("redis").StoreTime.Bounds, 0.0
	for i := range len(bounds) + 1 {
		n := 0.0
		for _, name := range []string{"redis", "down"} {
			n += float64(l.now(name).StoreTime.Counts[i] - l.stats[scrapes-1-window][name].StoreTime.Counts[i])
		}
		counts, all = append(counts, n), all+n
	}
	rank, lower := q*all, 0.0
	for i, bound := range bounds {
		if rank <= counts[i] {
			return lower + (bound-lower)*rank/counts[i]
		}
		rank, lower = rank-counts[i], bound
	}
	return math.Max(lower, 0)
}
