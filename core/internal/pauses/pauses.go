// Package pauses lists the pauses of calls that go out, for operators, and knows those that this
// process has met, so that they hold while the store does not answer. A pause itself is stored
// beside the counters of its key. The list only says where to look: each entry of a page is checked
// against the pause, so the list may be late, incomplete or lost.
package pauses

import (
	"context"
	_ "embed"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/background"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/optional"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

const (
	// mostListed is how many pauses of a rule are listed in Redis. Beyond that, those that end first are
	// left out.
	mostListed = 10_000
	// MaxKey is the length of the longest key whose pauses are listed.
	MaxKey = 255
	// listedAtOnce is how many keys one command lists, so that it takes the server less than a
	// millisecond.
	listedAtOnce = 500
	// keptFor is how long a pause stays in the list after its end, in microseconds.
	keptFor = int64(time.Minute / time.Microsecond)
)

//go:embed add.lua
var addText string

var addScript = algorithm.NewScript(addText)

// Pauses has the pauses of all rules. Make one with New. It is safe for concurrent use.
type Pauses struct {
	*Table
	redis   *redisstore.Store // nil without Redis
	memory  *memstore.Store   // nil with Redis
	keyHead string
	most    int // mostListed, except in tests
	tasks   background.Runner
	log     Log
	feature optional.Feature
}

// Log receives what an operator should know.
type Log interface {
	// PausesFailed reports that pauses could not be listed.
	PausesFailed(err error)
	// PausesOff reports that a right that the list needs is missing.
	PausesOff(err error)
}

// New returns the pauses in one of two stores; the other is nil. All keys begin with keyHead.
func New(t *Table, redis *redisstore.Store, memory *memstore.Store, keyHead string, tasks background.Runner, log Log) *Pauses {
	return &Pauses{Table: t, redis: redis, memory: memory, keyHead: keyHead, most: mostListed, tasks: tasks, log: log}
}

// Stored returns the key in the store of the pause of a rule's key.
func (p *Pauses) Stored(rule, key string) []byte {
	return rediskey.Append(nil, p.keyHead, key, rediskey.PauseTail(rule))
}

// Recorded notes a pause that the store has recorded. If it is longer than before, it is listed in
// the background. Then the channel is closed.
func (p *Pauses) Recorded(ctx context.Context, rule, key string, now algorithm.Paused) (listed <-chan struct{}) {
	if now.Lasts > 0 {
		p.remember(p.Stored(rule, key), rule, key, now.At, now.Lasts, math.MaxInt64)
	}
	if !now.Longer || len(key) > MaxKey {
		return done
	}
	list, ends := rediskey.PauseList(p.keyHead, rule), now.At+now.Lasts
	member := strings.Clone(key) // a framework may have lent it for one call
	return p.change(ctx, func(ctx context.Context) error {
		_, err := p.redis.Script(ctx, addScript, []string{list}, ends, member, p.most, keptFor)
		return err
	})
}

// Lifted removes a pause from the list in the background, and then closes the channel.
func (p *Pauses) Lifted(ctx context.Context, rule, key string) (removed <-chan struct{}) {
	list, member := rediskey.PauseList(p.keyHead, rule), strings.Clone(key)
	return p.change(ctx, func(ctx context.Context) error {
		_, err := p.redis.Command(ctx, "zrem", list, member)
		return err
	})
}

// done is closed.
var done = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// change changes the list in the background, unless a right is missing, and logs failures.
func (p *Pauses) change(ctx context.Context, change func(context.Context) error) <-chan struct{} {
	if p.redis == nil {
		return done
	}
	changed := make(chan struct{})
	p.tasks.Run(ctx, changed, func(ctx context.Context) {
		if p.feature.IsOff() {
			return
		}
		err := p.redis.Operate(ctx, change)
		switch {
		case p.feature.TurnOff(err):
			p.log.PausesOff(err)
		case err != nil:
			p.log.PausesFailed(err)
		}
	})
	return changed
}

// Entry is a pause in force.
type Entry struct {
	Key string
	algorithm.PauseState
}

// Page looks at n listed pauses of a rule in the order of their keys, starting behind the key
// after, and returns those that are in force. To get the next page, pass next as after; next is ""
// if this is the last page.
func (p *Pauses) Page(ctx context.Context, rule, after string, n int) (page []Entry, next string, err error) {
	err = p.read(ctx, func(ctx context.Context) error {
		keys, err := p.list(ctx, rule)
		if err != nil {
			return err
		}
		at, found := slices.BinarySearch(keys, after)
		if found {
			at++
		}
		if keys = keys[at:]; len(keys) >= n {
			keys = keys[:n]
			next = keys[n-1]
		}
		page, err = p.inForce(ctx, rule, keys)
		return err
	})
	return page, next, err
}

// Of returns the pause of a key, listed or not, or false if none is in force.
func (p *Pauses) Of(ctx context.Context, rule, key string) (e Entry, ok bool, err error) {
	err = p.read(ctx, func(ctx context.Context) error {
		found, err := p.inForce(ctx, rule, []string{key})
		if len(found) > 0 {
			e, ok = found[0], true
		}
		return err
	})
	return e, ok, err
}

// read reads from the store. In Redis it takes no longer than Timeout.
func (p *Pauses) read(ctx context.Context, read func(context.Context) error) error {
	if p.redis == nil {
		return read(ctx)
	}
	return p.redis.Operate(ctx, read)
}

// list returns the keys in the list of a rule, sorted.
func (p *Pauses) list(ctx context.Context, rule string) (keys []string, err error) {
	if p.redis == nil {
		p.Each(func(of, key string, _ int64) {
			if of == rule {
				keys = append(keys, key)
			}
		})
	}
	for more := p.redis != nil; more; {
		found, err := p.listPart(ctx, rule, len(keys))
		if err != nil {
			return nil, err
		}
		keys = append(keys, found...)
		more = len(found) == listedAtOnce
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// listPart returns the next keys of the list, from those whose pauses end last, which removing
// ended pauses does not shift.
func (p *Pauses) listPart(ctx context.Context, rule string, from int) (keys []string, err error) {
	defer p.redis.Turn(ctx)()
	reply, err := p.redis.Command(ctx, "zrange", rediskey.PauseList(p.keyHead, rule), from, from+listedAtOnce-1, "rev")
	values, _ := reply.([]any)
	for _, value := range values {
		key, _ := value.(string)
		keys = append(keys, key)
	}
	return keys, err
}

// inForce returns the pauses of keys that are in force now. It ignores keys that hold something
// else.
func (p *Pauses) inForce(ctx context.Context, rule string, keys []string) (page []Entry, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	stored := make([]string, len(keys))
	for i, key := range keys {
		stored[i] = string(p.Stored(rule, key))
	}
	states, now, err := p.states(ctx, stored)
	for i, state := range states {
		if state.Ends > now {
			page = append(page, Entry{keys[i], state})
		}
	}
	return page, err
}

// Refusals returns the number of pauses after refusals since the server last answered a call.
func (p *Pauses) Refusals(ctx context.Context, rule, key string) (n int64, err error) {
	read := func(ctx context.Context) error {
		states, _, err := p.states(ctx, []string{string(p.Stored(rule, key))})
		if err == nil {
			n = states[0].Refusals
		}
		return err
	}
	if p.redis == nil {
		return n, read(ctx)
	}
	err = p.redis.Operate(ctx, read)
	return n, err
}

// states returns the states of pauses, and the time.
func (p *Pauses) states(ctx context.Context, stored []string) (states []algorithm.PauseState, now int64, err error) {
	states = make([]algorithm.PauseState, len(stored))
	if p.redis == nil {
		for i, key := range stored {
			states[i], now = p.memory.PauseOf([]byte(key))
		}
		return states, now, nil
	}
	if now, err = p.redis.Now(ctx, stored[0]); err != nil {
		return nil, 0, err
	}
	var failed []error
	for i, value := range p.redis.GetAll(ctx, stored) {
		if value.Err != nil && failure.ClassOf(value.Err) != failure.Foreign {
			failed = append(failed, value.Err)
		}
		states[i], _ = algorithm.ReadPause(value.Text, now) // somebody else's value is no pause
	}
	return states, now, errors.Join(failed...)
}
