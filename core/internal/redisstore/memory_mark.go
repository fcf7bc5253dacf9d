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
)

//go:embed mark.lua
var markText string

// memoryMark is a key by which a process notices that a server has lost its memory: it is renewed
// while calls are made, and a restarted or replaced server has it only if it has kept the data.
// Nothing else shows that: a server with another run_id may have loaded all of it from its disk, and
// FLUSHALL changes no run_id. Renewals are counted, so that a replica or a file that is behind is
// noticed too. A nil mark is never renewed.
type memoryMark struct {
	node    node
	common  *common
	client  *redis.Client        // of the server
	cluster *redis.ClusterClient // of which the server is a master, or nil
	index   int                  // of the key that lies on the server
}

const (
	// markEvery is how often a process looks at a mark, which one of all processes renews. So the
	// time of the latest writes that are left is known this exactly.
	markEvery = 10 * time.Second
	// maxMarks bounds the keys that are tried until one lies on a master of a cluster.
	maxMarks = 4096
)

// markState is what a process knows of a mark.
type markState struct {
	id         string
	number, at int64 // at is when it was renewed last, in seconds
}

// renew renews the mark, and returns what the server has lost since the last time: "" if nothing.
func (m *memoryMark) renew(ctx context.Context) (lost string, err error) {
	if m == nil || m.common.markHead == "" {
		return "", nil
	}
	key, ok := m.key(ctx)
	if !ok {
		return "", nil
	}
	cmd := &valueCommand{Cmd: redis.NewCmd(ctx, "eval", markText, 1, key, strconv.FormatUint(rand.Uint64(), 16), int(markEvery/time.Second)/2)}
	if err := m.node.process(ctx, cmd); err != nil {
		return "", err
	}
	reply, err := cmd.StringSlice()
	if err != nil || len(reply) != 2 {
		return "", errors.New("the reply of the script cannot be read")
	}
	return m.compare(key, parseMark(reply[0]), parseMark(reply[1])), nil
}

// key returns the key of the mark. In a cluster it is the first one that lies on this master, so
// that a replica in its place has the same.
func (m *memoryMark) key(ctx context.Context) (key string, ok bool) {
	if m.cluster == nil {
		return m.common.markKey(0), true
	}
	for i := range maxMarks {
		key := m.common.markKey((m.index + i) % maxMarks)
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

// markKey returns the key of a mark. No subject has its hash tag, because two hex digits follow a %
// there.
func (c *common) markKey(i int) string { return fmt.Sprintf("%s%%mark%d}:mk1", c.markHead, i) }

func parseMark(text string) (s markState) {
	_, _ = fmt.Sscanf(text, "%s %d %d", &s.id, &s.number, &s.at)
	return s
}

// compare returns what the server has lost, by what its mark was now and when this process last saw
// it, and remembers what the mark is after the renewal.
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
		return "everything"
	case was.number < known.number:
		return "what was written since " + time.Unix(was.at, 0).UTC().Format(time.RFC3339)
	default:
		return ""
	}
}
