package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// contestant is a rival that is ready for the runs of one part. It has a database of its own in the
// server.
type contestant struct {
	name    string
	measure func(run) (*harness.Outcome, error)
	close   func()
}

// contestantNames are the names of all contestants in the order of the tables.
func contestantNames() (names []string) {
	for _, r := range rivals.OnRedis {
		if !r.CostsOnly {
			names = append(names, r.Name)
		}
	}
	return append(names, scriptAlone)
}

func closeAll(contestants []contestant) {
	for _, c := range contestants {
		c.close()
	}
}

// contestants opens the rivals that take part in any of the runs. Even with an error, it returns
// those opened so far, which the caller must close.
func (b *bench) contestants(runs []run) (all []contestant, err error) {
	if err := b.server.Flush(); err != nil {
		return nil, err
	}
	w := runs[0].workload
	keys := harness.NewKeys("key", w.keys)
	for i, name := range contestantNames() {
		if !slices.ContainsFunc(runs, func(r run) bool { return r.has(name, r.goroutines) }) {
			continue
		}
		var c contestant
		place := rivals.Place{Addr: b.server.Addr, DB: i + 1}
		if name == scriptAlone {
			c, err = b.scriptAlone(w, place, keys)
		} else {
			c, err = b.contestant(rivals.Find(name), w, b.server, place, keys)
		}
		if err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// contestant opens a rival, and makes its keys if the workload wants them.
func (b *bench) contestant(r rivals.Redis, w workload, server *harness.Server, place rivals.Place, keys harness.Keys) (c contestant, err error) {
	limiter, err := r.Open(place, w.limit)
	if err != nil {
		return c, err
	}
	if r.Name == rivals.Overridden {
		err = forEachKey(keys, limiter.Override)
	}
	if err == nil && w.loaded {
		err = callEach(limiter.Allow, keys)
	}
	measure := func(run run) (*harness.Outcome, error) {
		return harness.Loop(limiter.Allow, b.load(run, keys), server)
	}
	return contestant{r.Name, measure, limiter.Close}, err
}

// scriptAlone sends our TokenBucket's script once per decision, in pipelines, without a limiter. It
// shows how many decisions a server can make if each needs its own script.
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
	encoded := make([][]byte, keys.Len())
	for i := range encoded {
		other := slices.Clone(call)
		for k, arg := range other {
			other[k] = strings.ReplaceAll(arg, keys.At(0), keys.At(i))
		}
		encoded[i] = harness.Encode(other)
	}
	replay := func(calls [][]byte) (*harness.Outcome, error) {
		return b.server.Replay(place.DB, calls, len(calls), scriptAloneConnections, scriptAloneDepth)
	}
	measure := func(run run) (*harness.Outcome, error) { return replay(picked(encoded, run.picks, b.aloneCalls)) }
	_, err = replay(encoded) // so that all keys exist
	return contestant{scriptAlone, measure, func() {}}, err
}

// picked returns n calls in the order of picks, starting at a random pick.
func picked(calls [][]byte, picks []uint32, n int) [][]byte {
	chosen, from := make([][]byte, n), rand.IntN(len(picks))
	for i := range chosen {
		chosen[i] = calls[picks[(from+i)%len(picks)]]
	}
	return chosen
}

// masters is the part that compares clusters, all on this machine.
const masters = "clusters"

// clusterNames are the names of clusters with one master, and with three.
var clusterNames = []string{clusterOf(1), clusterOf(3)}

func clusterOf(n int) string { return fmt.Sprintf("masters: %d", n) }

func clusterWorkload() workload {
	w := uniform
	w.name, w.only, w.base, w.all, w.few = masters, clusterNames, clusterOf(1), []int{crowd}, []int{crowd}
	return w
}

func (b *bench) clusters() error {
	w := clusterWorkload()
	w.keys = min(w.keys, b.keys)
	keys := harness.NewKeys("key", w.keys)
	var contestants []contestant
	defer func() { closeAll(contestants) }()
	for _, n := range []int{1, 3} {
		dir, err := os.MkdirTemp("", "accesslimit-bench")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		cluster, err := harness.StartCluster(n, dir)
		if err != nil {
			return err
		}
		defer cluster.Stop()
		c, err := b.contestant(rivals.Find(rivals.SlidingWindow), w, cluster, rivals.Place{Addr: cluster.Addr, Cluster: true}, keys)
		if err != nil {
			return err
		}
		c.name = clusterOf(n)
		contestants = append(contestants, c)
	}
	return b.inRounds([]run{{w, crowd, w.picks(w.keys)}}, contestants)
}

// callEach calls every key once. All calls must be admitted.
func callEach(allow harness.AllowFunc, keys harness.Keys) error {
	return forEachKey(keys, func(subject string) error {
		allowed, err := patiently(allow, subject)
		if err == nil && !allowed {
			err = errors.New("the first call on a key was refused")
		}
		return err
	})
}

// atOnce is how many goroutines make the first call on every key.
const atOnce = 128

// forEachKey runs call for every key, from several goroutines.
func forEachKey(keys harness.Keys, call func(subject string) error) error {
	var group errgroup.Group
	for g := range min(atOnce, keys.Len()) {
		group.Go(func() error {
			for i := g; i < keys.Len(); i += atOnce {
				if err := call(keys.At(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
