package banlist

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// The scripts are in this package because they do not depend on algorithms.
var (
	//go:embed add.lua
	addText string
	//go:embed remove.lua
	removeText string
	//go:embed list.lua
	listText string

	addScript    = algorithm.NewScript(addText)
	removeScript = algorithm.NewScript(removeText)
	listScript   = algorithm.NewScript(listText)
)

const (
	// addedAtOnce is how many bans one script call adds, and listedAtOnce how many one lists, so
	// that neither takes the server longer than 250 us. Listing 100 takes 40 to 100 us; 1,000 took
	// 0.9 to 1.2 ms.
	addedAtOnce, listedAtOnce = 10, 100
	// keptFor is how long an entry stays in the index after its ban has ended, in microseconds.
	keptFor = int64(time.Minute / time.Microsecond)
)

// Index is the List of all processes, in Redis. It has an index of the subjects of each rule, in a
// slot of its own, which expires soon after its last ban has ended. One set of the index is sorted
// by subject, so that pages miss nothing while bans come and go. The other is sorted by end, so
// that each call that adds bans can remove some that have ended. The errors of its methods are
// those of the context, and *failure.Error.
type Index struct {
	redis   *redisstore.Store
	keyHead string
	most    int // [Most], except in tests
}

// NewIndex returns the index of at most most bans of each rule. All keys begin with keyHead.
func NewIndex(redis *redisstore.Store, keyHead string, most int) *Index {
	return &Index{redis, keyHead, most}
}

func (x *Index) keys(rule string) []string {
	inOrder, byEnd := rediskey.BanIndex(x.keyHead, rule)
	return []string{inOrder, byEnd}
}

func (x *Index) key(subject, tail string) string {
	return string(rediskey.Append(nil, x.keyHead, subject, tail))
}

// Add implements List. Each script call takes no longer than Timeout.
func (x *Index) Add(ctx context.Context, bans []Sighting) error {
	bans = slices.SortedStableFunc(slices.Values(bans), func(a, b Sighting) int { return strings.Compare(a.Rule, b.Rule) })
	for len(bans) > 0 {
		n := 1
		for n < min(len(bans), addedAtOnce) && bans[n].Rule == bans[0].Rule {
			n++
		}
		if err := x.redis.Operate(ctx, func(ctx context.Context) error { return x.add(ctx, bans[:n]) }); err != nil {
			return err
		}
		bans = bans[n:]
	}
	return nil
}

// add enters bans of one rule. It is called within Operate.
func (x *Index) add(ctx context.Context, bans []Sighting) error {
	args := []any{x.most, keptFor}
	for _, ban := range bans {
		args = append(args, ban.Ends, ban.Subject)
	}
	_, err := x.redis.Script(ctx, addScript, x.keys(bans[0].Rule), args...)
	return err
}

// AddByHand implements List. It writes the note first: a note without an entry does no harm and
// expires with the ban.
func (x *Index) AddByHand(ctx context.Context, ban Sighting, author, note string) error {
	kept := algorithm.BanNote{Ends: ban.Ends, Author: author, Note: note}
	return x.redis.Operate(ctx, func(ctx context.Context) error {
		key, until := x.key(ban.Subject, rediskey.BanNoteTail(ban.Rule)), ban.Ends/1000+1
		if _, err := x.redis.Command(ctx, "set", key, kept.Append(nil), "pxat", until); err != nil {
			return err
		}
		return x.add(ctx, []Sighting{ban})
	})
}

// Remove implements List.
func (x *Index) Remove(ctx context.Context, rule, subject string) error {
	return x.redis.Operate(ctx, func(ctx context.Context) error {
		if _, err := x.redis.Script(ctx, removeScript, x.keys(rule), subject); err != nil {
			return err
		}
		_, err := x.redis.Command(ctx, "del", x.key(subject, rediskey.BanNoteTail(rule)))
		return err
	})
}

// Page implements List. It takes one trip for each hundred subjects, and more for their bans.
func (x *Index) Page(ctx context.Context, rule, after string, n int) (page []Entry, next string, err error) {
	err = x.redis.Operate(ctx, func(ctx context.Context) error {
		now, subjects, err := x.list(ctx, rule, after, n)
		if err != nil {
			return err
		}
		if len(subjects) == n {
			next = subjects[n-1]
		}
		page, err = x.inForce(ctx, rule, subjects, now)
		return err
	})
	return page, next, err
}

// Of implements List. It takes a trip for the time, and one for the ban.
func (x *Index) Of(ctx context.Context, rule, subject string) (e Entry, ok bool, err error) {
	err = x.redis.Operate(ctx, func(ctx context.Context) error {
		now, _, err := x.list(ctx, rule, "", 1)
		if err != nil {
			return err
		}
		found, err := x.inForce(ctx, rule, []string{subject}, now)
		if len(found) > 0 {
			e, ok = found[0], true
		}
		return err
	})
	return e, ok, err
}

// list returns n subjects of the index, and the time.
func (x *Index) list(ctx context.Context, rule, after string, n int) (now int64, subjects []string, err error) {
	for more := true; more; {
		from, wanted := "-", min(listedAtOnce, n-len(subjects))
		if after != "" {
			from = "(" + after
		}
		var found []string
		if now, found, err = x.listPart(ctx, rule, from, wanted); err != nil {
			return 0, nil, err
		}
		subjects = append(subjects, found...)
		if more = len(found) == wanted && len(subjects) < n; more {
			after = subjects[len(subjects)-1]
		}
	}
	return now, subjects, nil
}

func (x *Index) listPart(ctx context.Context, rule, from string, n int) (now int64, subjects []string, err error) {
	defer x.redis.Turn(ctx)()
	reply, err := x.redis.Script(ctx, listScript, x.keys(rule)[:1], from, n)
	if err != nil {
		return 0, nil, err
	}
	return readList(reply)
}

// readList reads the reply of list.lua.
func readList(reply []any) (now int64, subjects []string, err error) {
	ok := len(reply) > 0
	if ok {
		now, ok = reply[0].(int64)
		for _, item := range reply[1:] {
			subject, isText := item.(string)
			subjects, ok = append(subjects, subject), ok && isText
		}
	}
	if !ok {
		return 0, nil, &failure.Error{Class: failure.Unexpected, Err: fmt.Errorf("a reply cannot be read: %v", reply)}
	}
	return now, subjects, nil
}

// inForce returns the bans of subjects that are in force now. It ignores keys that hold something
// else.
func (x *Index) inForce(ctx context.Context, rule string, subjects []string, now int64) (page []Entry, err error) {
	bans, notes := make([]string, len(subjects)), make([]string, len(subjects))
	banTail, noteTail := rediskey.BanTail(rule, false), rediskey.BanNoteTail(rule)
	for i, subject := range subjects {
		bans[i], notes[i] = x.key(subject, banTail), x.key(subject, noteTail)
	}
	values := x.redis.GetAll(ctx, append(bans, notes...))
	var failed []error
	for i, subject := range subjects {
		ban, note := values[i], values[len(subjects)+i]
		if err := ban.Err; err != nil && failure.ClassOf(err) != failure.Foreign {
			failed = append(failed, err)
		}
		if state, err := algorithm.ReadBan(ban.Text, now); ban.Ok && err == nil && state.Ends > now {
			e := Entry{Subject: subject, BanState: state, At: now}
			e.annotate(algorithm.ReadBanNote(note.Text))
			page = append(page, e)
		}
	}
	return page, errors.Join(failed...)
}
