// Package banwatch reads the bans and blocks of all processes from their lists, in the background,
// so that they hold in this process too while the store does not answer: see package knownbans. It
// polls them with the scripts that return their pages, which work in an old Redis and need no help
// from other processes.
package banwatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/banlist"
	"github.com/accesslimit/accesslimit/core/internal/knownbans"
	"github.com/accesslimit/accesslimit/core/internal/optional"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/panics"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

const (
	// first is the longest time from the start to the first round, and every is the longest time
	// between rounds. The actual times are random, down to half of these, so that the processes of
	// a fleet do not read at the same time.
	first, every = time.Second, 15 * time.Second
	// One round reads at most mostPages pages of pageSize bans, and stops after the page that
	// reaches mostBans bans. It also reads at most mostChecks bans that are known here but are not
	// on these pages. The next round continues where this one stopped.
	mostPages, pageSize, mostBans, mostChecks = 50, 100, 500, 100
)

// Rules returns the names of the rules that obey bans, and of those that obey overrides.
type Rules func() (banned, overridden []string)

// Watch reads lists. It is safe for concurrent use.
type Watch struct {
	table   *knownbans.Table
	redis   *redisstore.Store
	keyHead string
	bans    banlist.List
	rules   Rules
	log     Log
	feature optional.Feature

	mu     sync.Mutex
	timer  *time.Timer
	closed bool

	reading sync.Mutex
	at      list   // the list that the next round begins with
	after   string // continues behind this subject
}

// list is a list of one rule.
type list struct {
	rule   string
	blocks bool // the blocks among the rule's overrides, instead of its bans
}

func (l list) compare(other list) int {
	switch {
	case l.blocks == other.blocks:
		return strings.Compare(l.rule, other.rule)
	case l.blocks:
		return 1
	default:
		return -1
	}
}

// Log receives what an operator should know.
type Log interface {
	// BanWatchOff reports that the right to read the lists is missing.
	BanWatchOff(err error)
}

// New returns a Watch that adds what it reads to a table. All keys begin with keyHead.
func New(table *knownbans.Table, redis *redisstore.Store, keyHead string, bans banlist.List, rules Rules, log Log) *Watch {
	return &Watch{table: table, redis: redis, keyHead: keyHead, bans: bans, rules: rules, log: log}
}

// Start begins to read, unless that has begun. A nil Watch has nothing to read.
func (w *Watch) Start() {
	if w != nil {
		w.plan(first, false)
	}
}

// Started reports whether Start was called.
func (w *Watch) Started() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.timer != nil
}

// plan schedules the next round, between half of longest and longest from now. again says that it
// follows another round.
func (w *Watch) plan(longest time.Duration, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.timer != nil && !again {
		return
	}
	w.timer = time.AfterFunc(longest/2+rand.N(longest/2), panics.Guard(func() { w.redis.InBackground(w.round) }, w.redis.Panicked))
}

// Close ends the reading. A round that is under way ends with its present page.
func (w *Watch) Close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *Watch) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

func (w *Watch) round() {
	defer w.plan(every, true) // also after a panic
	if !w.feature.IsOff() && !w.isClosed() {
		_ = w.Read(context.Background())
	}
}

// Read makes a round. It reads the lists, and then checks the known bans that it did not find
// there. If a right is missing, it skips the next rounds. Nothing is logged while the store does
// not answer, because calls log that.
func (w *Watch) Read(ctx context.Context) error {
	w.reading.Lock()
	defer w.reading.Unlock()
	began := w.table.Begin()
	err := errors.Join(w.readLists(ctx, w.lists()), w.check(ctx, began))
	if w.feature.TurnOff(err) {
		w.log.BanWatchOff(err)
	}
	return err
}

// lists returns all lists in order.
func (w *Watch) lists() (all []list) {
	banned, overridden := w.rules()
	for _, rule := range banned {
		all = append(all, list{rule, false})
	}
	for _, rule := range overridden {
		all = append(all, list{rule, true})
	}
	slices.SortFunc(all, list.compare)
	return slices.Compact(all)
}

// readLists reads the next pages and remembers where it stopped. If a server does not answer for a
// page, readLists continues with the others, and returns the last such error.
func (w *Watch) readLists(ctx context.Context, all []list) (failed error) {
	start, found := slices.BinarySearchFunc(all, w.at, list.compare)
	if !found {
		w.after = ""
	}
	pages, bans := 0, 0
	for i := range all {
		w.at = all[(start+i)%len(all)]
		for more := true; more; more = w.after != "" {
			if pages == mostPages || bans > mostBans || w.isClosed() {
				return failed
			}
			found, next, err := w.readPage(ctx, w.at, w.after)
			if err != nil {
				failed = err
			}
			pages, bans, w.after = pages+1, bans+found, next
		}
	}
	return failed
}

// readPage reads a page of a list, and returns how many bans or overrides it has.
func (w *Watch) readPage(ctx context.Context, l list, after string) (found int, next string, err error) {
	if l.blocks {
		return w.readBlocks(ctx, overrides.New(w.redis, w.keyHead, l.rule, overrides.Most), l.rule, after)
	}
	return w.readBans(ctx, l.rule, after)
}
