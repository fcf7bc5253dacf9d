// Package losses keeps what Redis servers have lost in the last day, as the processes noticed it,
// so that an operator learns of it without their logs.
package losses

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

const (
	// lifetime is how long a loss is kept, and most how many losses are kept.
	lifetime, most = 24 * time.Hour, 100
	// recent is how long after a loss of the latest writes another report of one is about the same
	// loss.
	recent = 10 * time.Minute
)

// The script is in this package because it does not depend on algorithms.
//
//go:embed record.lua
var recordText string

var record = algorithm.NewScript(recordText)

// Repeat is what to do about a loss.
const Repeat = "publish the document again, unless that was done; counters start afresh, and running processes write bans, blocks and overrides back"

// Loss is what a server has lost.
type Loss struct {
	Time   time.Time // when the first process noticed it, by the clock of Redis
	Server string
	Lost   string
	How    string
}

// List is the list of a prefix. It is safe for concurrent use. A nil List, of a process without
// Redis, is empty.
type List struct {
	redis *redisstore.Store
	key   string
}

// New returns the list of a prefix. The hash tag of its key cannot belong to a subject, where two
// hex digits follow each %.
func New(redis *redisstore.Store, prefix string) *List {
	return &List{redis, prefix + ":{%losses}:ls1"}
}

// Record adds a loss that this process has noticed, unless another process has added it.
func (l *List) Record(ctx context.Context, noticed redisstore.Loss) error {
	text, _ := json.Marshal(Loss{Server: noticed.Addr, Lost: noticed.Lost, How: noticed.How}) // three texts can always be encoded
	same := recent
	if noticed.All() {
		same = lifetime
	}
	return l.redis.Operate(ctx, func(ctx context.Context) error {
		_, err := l.redis.Script(ctx, record, []string{l.key}, lifetime.Microseconds(), most, same.Microseconds(), noticed.ID, text)
		return err
	})
}

// Recent returns the losses of the last day, newest first. Its errors are those of the context, and
// *failure.Error.
func (l *List) Recent(ctx context.Context) (all []Loss, err error) {
	if l == nil {
		return nil, nil
	}
	err = l.redis.Operate(ctx, func(ctx context.Context) error {
		reply, err := l.redis.Command(ctx, "zrange", l.key, 0, -1)
		if err != nil {
			return err
		}
		members, _ := reply.([]any)
		for _, member := range members {
			loss, ok := parse(fmt.Sprint(member))
			if !ok {
				return &failure.Error{Class: failure.Unexpected, Err: fmt.Errorf("the list has an entry %.100q, which cannot be read", member)}
			}
			if time.Since(loss.Time) < lifetime {
				all = append(all, loss)
			}
		}
		slices.Reverse(all)
		return nil
	})
	return all, err
}

// parse reads a member of the list: the time in microseconds since the epoch, the ID, and the loss.
func parse(member string) (loss Loss, ok bool) {
	parts := strings.SplitN(member, " ", 3)
	if len(parts) < 3 {
		return loss, false
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || json.Unmarshal([]byte(parts[2]), &loss) != nil {
		return loss, false
	}
	loss.Time = time.UnixMicro(at).UTC()
	return loss, true
}
