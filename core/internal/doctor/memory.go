package doctor

import (
	"context"
	"fmt"
	"strings"
)

// nearlyFull is the share of maxmemory from which on a server is nearly full.
const nearlyFull = 0.9

// eviction looks whether a server deletes counters when memory is short.
func (e *exam) eviction(_ context.Context, s *server) {
	policy, most := s.info["maxmemory_policy"], s.number("maxmemory")
	const do = "CONFIG SET maxmemory-policy noeviction, and the same in the configuration file"
	switch evicted := s.number("evicted_keys"); {
	case policy == "":
		e.unseen("eviction", s, "maxmemory-policy", s.whySilent())
	case policy != "noeviction" && evicted > 0:
		e.add(Problem, "eviction", s, fmt.Sprintf("maxmemory-policy is %s, and %d keys were evicted since the server started: their counters began afresh", policy, evicted), do)
	case policy != "noeviction" && most > 0:
		e.add(Problem, "eviction", s, fmt.Sprintf("maxmemory-policy is %s: when memory is short, counters are evicted, and begin afresh", policy), do)
	case policy != "noeviction":
		e.add(Note, "eviction", s, fmt.Sprintf("maxmemory-policy is %s, which matters once maxmemory is set", policy), do)
	default:
		e.add(OK, "eviction", s, "maxmemory-policy is noeviction", "")
	}
}

// memory looks how much room is left.
func (e *exam) memory(_ context.Context, s *server) {
	used, most := s.number("used_memory"), s.number("maxmemory")
	says := fmt.Sprintf("%s of %s are used", megabytes(used), megabytes(most))
	switch {
	case used == 0:
		e.unseen("memory", s, "the memory", s.whySilent())
	case most == 0:
		e.add(Note, "memory", s, megabytes(used)+" are used, and maxmemory is not set: the machine's memory is the bound",
			"set maxmemory below the memory of the machine, so that the system does not kill Redis")
	case used >= most && s.info["maxmemory_policy"] == "noeviction":
		e.add(Problem, "memory", s, says+": it is full, so Redis refuses to count, and OnStoreError decides", "raise maxmemory, or give the limits a server of their own")
	case s.isNearlyFull():
		e.add(Warning, "memory", s, says+": when it is full, Redis refuses to count, and OnStoreError decides", "raise maxmemory, or give the limits a server of their own")
	default:
		e.add(OK, "memory", s, says, "")
	}
}

// isNearlyFull reports whether little of maxmemory is left.
func (s *server) isNearlyFull() bool {
	most := s.number("maxmemory")
	return most > 0 && float64(s.number("used_memory")) >= nearlyFull*float64(most)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// persistence looks whether bans, overrides and the document outlast a restart.
func (e *exam) persistence(ctx context.Context, s *server) {
	const lost = "a restart loses the document and the audit, counters begin afresh, and only running processes have the bans and overrides"
	if s.info["aof_enabled"] == "" {
		e.unseen("persistence", s, "persistence", s.whySilent())
		return
	}
	if s.info["rdb_last_bgsave_status"] == "err" || s.info["aof_last_write_status"] == "err" {
		e.add(Problem, "persistence", s, "the last attempt to save failed: Redis may refuse to write", "see Redis's log, and the room on its disk")
		return
	}
	saves, err := e.config(ctx, s, "save")
	switch {
	case s.info["aof_enabled"] == "1":
		e.add(OK, "persistence", s, "every write is logged (appendonly yes)", "")
	case err != nil:
		e.unseen("persistence", s, "appendonly is off, and whether snapshots are saved", err)
	case strings.TrimSpace(saves) == "":
		e.add(Warning, "persistence", s, "nothing is saved: "+lost, "CONFIG SET appendonly yes, and the same in the configuration file")
	default:
		e.add(OK, "persistence", s, "snapshots are saved (save "+saves+"); a crash loses what came after the last one", "")
	}
}

// config returns a setting of a server.
func (e *exam) config(ctx context.Context, s *server, name string) (value string, err error) {
	reply, err := ask(ctx, e, func(ctx context.Context) (any, error) { return s.node.Do(ctx, "config", "get", name).Result() })
	switch reply := reply.(type) {
	case map[any]any:
		value, _ = reply[name].(string)
	case []any:
		if len(reply) == 2 {
			value, _ = reply[1].(string)
		}
	}
	return value, err
}
