package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
	"github.com/accesslimit/accesslimit/core"
)

// The time that the server's main thread takes for a decision. The scripts are recorded as the
// library sends them for calls on many keys at once, and then repeated on keys that are alive, over
// 2 connections with 64 scripts in flight on each.
const (
	timedKeys        = 3000
	timedConnections = 2
	timedDepth       = 64
)

// script is what a rival sends for calls that all get the same answer. Its setup commands bring the
// keys into the state that the calls need.
type script struct {
	rival, answer string
	setup, calls  [][]byte
}

// cell returns the cell of the script's outcomes.
func (s script) cell() cell { return timeOf(s.rival, s.answer) }

func timeOf(rival, answer string) cell {
	return cell{workload: "server's time, " + answer, rival: rival}
}

// The answers whose time is measured.
const (
	allowedCall = "allowed"
	refusedCall = "refused"
)

// serverFloors are the cheapest commands, as lower bounds for a decision, and the largest refund: of a
// call in the middle of a full SlidingLog of 10,000 calls with the longest notes.
const (
	emptyScript = "EVALSHA of nothing"
	plainSet    = "SET with PX"
	refunded    = "refund from a full SlidingLog"
)

var serverFloors = []string{emptyScript, plainSet, refunded}

func (b *bench) serverTime() error {
	keys := harness.NewKeys("key", min(timedKeys, b.keys))
	if err := b.server.Flush(); err != nil {
		return err
	}
	for _, r := range rivals.OnRedis {
		if !r.Costs || r.Name == rivals.Here {
			continue
		}
		if err := b.recordScripts(r, keys); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	if err := b.addFloors(keys); err != nil {
		return err
	}
	for range b.costRounds {
		for _, i := range harness.Shuffled(len(b.scripts)) {
			if err := b.measureScript(b.scripts[i]); err != nil {
				return fmt.Errorf("%s, %s: %w", b.scripts[i].rival, b.scripts[i].answer, err)
			}
		}
	}
	return b.refunds()
}

// admitAll admits all calls of a round; admitOne admits one call per key. The refused calls come
// from a second limiter, which acts like another process: it cannot know yet that the key is used
// up.
var (
	admitAll = rivals.Limit{Max: 1000, Window: rivals.Roomy.Window, Permit: 30 * time.Second}
	admitOne = rivals.Limit{Max: 1, Window: time.Hour, Permit: 5 * time.Minute}
)

func (b *bench) recordScripts(r rivals.Redis, keys harness.Keys) error {
	allowed, err := b.record(r, admitAll, keys)
	if err != nil {
		return err
	}
	first, err := b.record(r, admitOne, keys)
	if err != nil {
		return err
	}
	refused, err := b.record(r, admitOne, keys)
	b.scripts = append(b.scripts, script{r.Name, allowedCall, allowed, allowed}, script{r.Name, refusedCall, first, refused})
	return err
}

// record returns the encoded scripts that a rival sends while many goroutines call all keys.
func (b *bench) record(r rivals.Redis, limit rivals.Limit, keys harness.Keys) ([][]byte, error) {
	callAll := func(keys harness.Keys) func(harness.AllowFunc) error {
		return func(allow harness.AllowFunc) error {
			return forEachKey(keys, func(subject string) error {
				_, err := patiently(allow, subject)
				return err
			})
		}
	}
	place := rivals.Place{Addr: b.server.Addr}
	scripts, err := r.Record(place, limit, callAll(harness.NewKeys("not", keys.Len())), callAll(keys))
	encoded := make([][]byte, len(scripts))
	for i, script := range scripts {
		encoded[i] = harness.Encode(script)
	}
	return encoded, err
}

// addFloors adds the scripts of serverFloors.
func (b *bench) addFloors(keys harness.Keys) error {
	sha, err := b.server.Client.ScriptLoad(background, "return 0").Result()
	nothing, set := make([][]byte, keys.Len()), make([][]byte, keys.Len())
	for i := range keys.Len() {
		nothing[i] = harness.Encode([]string{"evalsha", sha, "1", keys.At(i)})
		set[i] = harness.Encode([]string{"set", keys.At(i), "1234567890123456", "px", "60000"})
	}
	b.scripts = append(b.scripts, script{emptyScript, allowedCall, nothing, nothing}, script{plainSet, allowedCall, set, set})
	return err
}

func (b *bench) measureScript(s script) error {
	if err := b.server.Flush(); err != nil {
		return err
	}
	if _, err := b.server.Replay(0, s.setup, len(s.setup), timedConnections, timedDepth); err != nil {
		return err
	}
	o, err := b.server.Replay(0, s.calls, len(s.calls)*b.costTimes, timedConnections, timedDepth)
	o.Decisions = int64(min(timedKeys, b.keys) * b.costTimes)
	b.add(s.cell(), o)
	return err
}

func (b *bench) refunds() error {
	limiter, err := core.New(core.Options{Redis: b.server.Client, Timeout: time.Minute, Logger: rivals.Silent})
	if err != nil {
		return err
	}
	defer limiter.Close()
	const refunds = 51
	entries := max(2*refunds, b.keys/10)
	log := limiter.MustLog("refund", core.PerHour(entries).Log())
	charged := make([]core.Decision, entries)
	for i := range charged {
		if charged[i], err = log.Allow(background, "subject", strings.Repeat("note", 64)); err != nil {
			return err
		}
	}
	for _, d := range charged[(entries-refunds)/2:][:refunds] {
		before, err := b.server.Usage()
		if err != nil {
			return err
		}
		if err := limiter.Refund(background, d, 1); err != nil {
			return err
		}
		after, err := b.server.Usage()
		if err != nil {
			return err
		}
		took := after.Since(before).ScriptTime // excludes reading the figures
		b.add(timeOf(refunded, allowedCall), &harness.Outcome{Decisions: 1, Took: took, Server: harness.Usage{CPU: took, Scripts: 1}})
	}
	b.scripts = append(b.scripts, script{rival: refunded, answer: allowedCall})
	return nil
}
