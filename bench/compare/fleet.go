package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// fleet is a service on paper, computed from the figures of this run. README.md has the formulas.
type fleet struct {
	processes, decisions, keys float64
	lease                      float64 // permits of a trip, where calls are leased
	busy                       float64 // share of its time that a master may be busy
	micros                     float64 // of a master, for a decision
	bytes                      float64 // on the network, for a decision and its answer
	keyBytes                   float64
}

func (b *bench) fleet() fleet {
	c := b.costFor(rivals.OneKeyWindow, allowedCall)
	return fleet{
		processes: 1000, decisions: 10e6, keys: 10e6, lease: 1000, busy: 0.6,
		micros: b.costOf(rivals.OneKeyWindow, allowedCall).Median, bytes: c.in + c.out, keyBytes: b.weightOf(rivals.SlidingWindow).busy,
	}
}

// decisionsOfMaster returns how many decisions a master makes in a second when it is as busy as it
// may be. Calls on one key that share a script count as one decision.
func (f fleet) decisionsOfMaster() float64 { return f.busy * 1e6 / f.micros }

// masters returns how many masters make that many decisions in a second.
func (f fleet) masters(decisions float64) float64 {
	return math.Ceil(decisions/f.decisionsOfMaster() - 1e-9)
}

// gigabits returns how many gigabits that many decisions send over the network in a second.
func (f fleet) gigabits(decisions float64) float64 { return decisions * f.bytes * 8 / 1e9 }

// merged returns how many calls on one key share a script when its master is as busy as it may be.
func (f fleet) merged() float64 { return math.Max(1, f.decisions/f.decisionsOfMaster()) }

// trip returns how long a process waits for its turn on that key, in milliseconds, when every
// process has one script in flight.
func (f fleet) trip() float64 { return f.processes / f.decisionsOfMaster() * 1000 }

func (b *bench) fleetText(t *strings.Builder) {
	f := b.fleet()
	if math.IsNaN(f.micros) || math.IsNaN(f.keyBytes) {
		return
	}
	fmt.Fprintf(t, "## A fleet, on paper\n\n%s processes, %s decisions a second, SlidingWindow with one key per script. A decision takes %s µs of a master, which may be busy %.0f %% of its time, "+
		"and %s bytes there and back. [README.md](README.md) has the formulas.\n\n",
		harness.Number(f.processes), harness.Number(f.decisions), harness.Number(f.micros), 100*f.busy, harness.Number(f.bytes))
	table := harness.NewTable("calls", "decisions of Redis/s", "masters", "connections of each", "network Gbit/s", "and")
	row := func(calls string, decisions float64, and string) {
		table.Row(calls, decisions, fmt.Sprintf("%.0f", f.masters(decisions)), "1000 and more", f.gigabits(decisions), and)
	}
	row("10M keys, uniform", f.decisions, fmt.Sprintf("%s GB of keys in all", harness.Number(f.keys*f.keyBytes/1e9)))
	row("the same, leased", f.decisions, "a lease needs two calls on a key within a second: here each process sees one in 1000 s")
	row("one key", f.decisions/f.merged(), fmt.Sprintf("%s calls share a script, a turn takes %s ms", harness.Number(f.merged()), harness.Number(f.trip())))
	row("the same, leased by "+harness.Number(f.lease), f.decisions/f.lease, fmt.Sprintf("the master is busy %.1f %% of its time", 100*f.decisions/f.lease*f.micros/1e6))
	t.WriteString(table.String() + "\n")
}
