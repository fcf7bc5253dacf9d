package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// contestant is a rival that is ready for the runs of one part: it has a database of its own with
// a live state of every key.
type contestant struct {
	name    string
	measure func(run) (*harness.Outcome, error)
	close   func()
}

// contestantNames are the names of all contestants in the order of the tables.
func contestantNames() (names []string) {
	for _, r := range rivals.OnRedis {
		names = append(names, r.Name)
	}
	return append(names, scriptAlone)
}

func closeAll(contestants []contestant) {
	for _, c := range contestants {
		c.close()
	}
}

// contestants opens the rivals that take part in any of the runs. If it returns an error, it also
// returns those opened before, which the caller must close.
func (b *bench) contestants(runs []run, keys harness.Keys) (all []contestant, err error) {
	if err := b.server.Flush(); err != nil {
		return nil, err
	}
	for i, name := range contestantNames() {
		if !slices.ContainsFunc(runs, func(r run) bool { return r.has(name) }) {
			continue
		}
		var c contestant
		if name == scriptAlone {
			c, err = b.scriptAlone(runs[0].workload, placeOn(b.server, i), keys)
		} else {
			c, err = b.contestant(rivals.Find(name), runs[0].workload, b.server, i, keys)
		}
		if err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// contestant opens a rival on a server, in its n-th database if it has several.
func (b *bench) contestant(r rivals.Redis, w workload, server *harness.Server, n int, keys harness.Keys) (c contestant, err error) {
	place := placeOn(server, n)
	if w.loaded && !server.Cluster {
		if err := b.loadStates(r.Name, w.limit, place, keys.Len()); err != nil {
			return c, err
		}
	}
	limiter, err := r.Open(place, w.limit)
	if err != nil {
		return c, err
	}
	if w.loaded && server.Cluster {
		err = callEach(limiter.Allow, keys)
	}
	measure := func(run run) (*harness.Outcome, error) {
		return harness.Loop(limiter.Allow, b.load(run, keys), server)
	}
	return contestant{r.Name, measure, limiter.Close}, err
}

// scriptAlone is our TokenBucket's script, sent in pipelines once for each decision, without a
// limiter. It shows how many decisions a server makes if they share no script.
const (
	scriptAlone            = "one script per decision, no limiter"
	scriptAloneConnections = 4
	scriptAloneDepth       = crowd / scriptAloneConnections
)

func (b *bench) scriptAlone(w workload, place rivals.Place, keys harness.Keys) (contestant, error) {
	call, err := rivals.RecordOne(place, w.limit, keys.At(0))
	if err != nil {
		return contestant{}, err
	}
	if err := b.loadStates(rivals.OneKey, w.limit, place, keys.Len()); err != nil {
		return contestant{}, err
	}
	encoded := make([][]byte, keys.Len())
	for i := range encoded {
		encoded[i] = harness.Encode(withSubject(call, keys.At(0), keys.At(i)))
	}
	measure := func(run run) (*harness.Outcome, error) {
		return b.replay(place, picked(encoded, run.picks, b.aloneCalls), b.aloneCalls)
	}
	return contestant{scriptAlone, measure, func() {}}, nil
}

// withSubject returns a recorded call for another subject.
func withSubject(call []string, recorded, subject string) []string {
	other := make([]string, len(call))
	for i, arg := range call {
		other[i] = strings.ReplaceAll(arg, recorded, subject)
	}
	return other
}

// picked returns n calls in the order of picks, beginning at a random one.
func picked(calls [][]byte, picks []uint32, n int) [][]byte {
	chosen, from := make([][]byte, n), rand.IntN(len(picks))
	for i := range chosen {
		chosen[i] = calls[picks[(from+i)%len(picks)]]
	}
	return chosen
}

// replay sends n calls and measures the server and this process meanwhile.
func (b *bench) replay(place rivals.Place, calls [][]byte, n int) (*harness.Outcome, error) {
	before, err := b.server.Usage()
	if err != nil {
		return nil, err
	}
	cpu := harness.CPU()
	took, err := harness.Replay(place.Addrs[0], place.DB, calls, n, scriptAloneConnections, scriptAloneDepth)
	if err != nil {
		return nil, err
	}
	cpu = harness.CPU() - cpu
	after, err := b.server.Usage()
	return &harness.Outcome{
		Decisions: int64(n), Allowed: int64(n), Took: took, ClientCPU: cpu, Server: after.Since(before),
	}, err
}
