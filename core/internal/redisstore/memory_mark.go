package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

//go:embed mark.lua
var markText string

// memoryMark is a key that shows a process that a server has lost its memory. It is renewed
// while calls are made, and a restarted or replaced server has it only if it has kept the data.
// Nothing else shows this: a server with another run_id may have loaded all data from its disk, and
// FLUSHALL does not change the run_id. Renewals are counted, so that an outdated replica or file is
// noticed too. A nil mark is never renewed.
type memoryMark struct {
	node    node
	common  *common
	client  *redis.Client        // of the server
	cluster *redis.ClusterClient // the server's cluster, or nil
	index   int                  // the index of a key on this server
}

const (
	// markEvery is how often a process looks at a mark; one of the processes renews it. The time up
	// to which writes have survived is known with this precision.
	markEvery = 10 * time.Second
	// maxMarks bounds the keys that are tried until one lies on a master of a cluster.
	maxMarks = 4096
)

// markState is what a process knows of a mark.
type markState struct {
	id         string
	number, at int64 // at is the time of the last renewal, in seconds
}

// renew renews the mark, and returns what the server has lost since the last time, or "", and the
// ID of the mark, which is a new one if everything was lost.
func (m *memoryMark) renew(ctx context.Context) (lost, id string, err error) {
	if m == nil || m.common.markHead == "" {
		return "", "", nil
	}
	key, ok := m.key(ctx)
	if !ok {
		return "", "", nil
	}
	cmd := &valueCommand{Cmd: redis.NewCmd(ctx, "eval", markText, 1, key, strconv.FormatUint(rand.Uint64(), 16), int(markEvery/time.Second)/2)}
	if err := m.node.process(ctx, cmd); err != nil {
		return "", "", err
	}
	reply, err := cmd.StringSlice()
	if err != nil || len(reply) != 2 {
		return "", "", errors.New("the reply of the script cannot be read")
	}
	is := parseMark(reply[1])
	return m.compare(key, parseMark(reply[0]), is), is.id, nil
}

// key returns the key of the mark. In a cluster it is the first candidate on this master, so that a
// replica that takes its place has the same key.
func (m *memoryMark) key(ctx context.Context) (key string, ok bool) {
	if m.cluster == nil {
		return rediskey.Mark(m.common.markHead, 0), true
	}
	for i := range maxMarks {
		key := rediskey.Mark(m.common.markHead, (m.index+i)%maxMarks)
		master, err := m.cluster.MasterForKey(ctx, key)
		if err != nil {
			return "", false
		}
		if master == m.client {
			m.index = (m.index + i) % maxMarks
			return key, true
		}
	}
	return "", false
}

func parseMark(text string) (s markState) {
	_, _ = fmt.Sscanf(text, "%s %d %d", &s.id, &s.number, &s.at)
	return s
}

// compare returns what the server has lost, and since when if that is known, by comparing was, its
// mark before this renewal, with the mark that this process saw last. It remembers is, the mark
// after the renewal.
func (m *memoryMark) compare(key string, was, is markState) (lost string) {
	if m.cluster == nil {
		key = m.client.Options().Addr // each server of a ring has the same key
	}
	m.common.mu.Lock()
	defer m.common.mu.Unlock()
	known, ok := m.common.marks[key]
	if m.common.marks == nil || len(m.common.marks) >= maxShards {
		m.common.marks = make(map[string]markState)
	}
	m.common.marks[key] = is
	switch {
	case !ok:
		return ""
	case was.id != known.id:
		return everything
	case was.number < known.number && was.at < known.at:
		return "what was written since " + time.Unix(was.at, 0).UTC().Format(time.RFC3339)
	case was.number < known.number: // another process has renewed the mark since the loss
		return "the latest writes; since when is not known"
	default:
		return ""
	}
}
