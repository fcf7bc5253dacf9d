package core

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// storeFailed says that a call got no answer from the store, and what became of it: once for each kind of error and policy.
func (c *complaints) storeFailed(name, policy string, err error) {
	class, change, name, why := classOf(err), remedy(classOf(err), err), strings.Clone(name), kept(err)
	c.about[aboutStore].say(string(class)+policy, func(times int) {
		level, attrs := slog.LevelWarn, []any{slog.String("error", why), slog.String("class", string(class))}
		if class == StoreRefused || class == StoreForeignValue {
			level = slog.LevelError
		}
		if change != "" {
			attrs = append(attrs, slog.String("change", change))
		}
		attrs = append(attrs, slog.String("latest_rule", name), slog.String("policy", policy), slog.Int("calls", times))
		c.logger.Log(context.Background(), level, "accesslimit: the store does not answer", attrs...)
	})
}

// remedies are what to change about an error that somebody has to do something about, by words of Redis's.
var remedies = []struct{ words, change string }{
	{"OOM", "give Redis more maxmemory, or a server of its own; leave maxmemory-policy at noeviction"},
	{"NOAUTH", "set Username and Password in the Redis client's options"},
	{"WRONGPASS", "set Username and Password in the Redis client's options as Redis has them"},
	{"NOPERM", "give the Redis user the rights that SECURITY.md lists"},
	{"The user executing the script", "give the Redis user the rights that SECURITY.md lists"},
	{"ACL failure in script", "give the Redis user the rights that SECURITY.md lists"}, // as Redis 7.2 and later say it
	{"CROSSSLOT", "this is a cluster: make Options.Redis with redis.NewClusterClient"},
	{"MOVED", "this is a cluster: make Options.Redis with redis.NewClusterClient"},
	{"READONLY", "this is a replica: connect to the master, as redis.NewFailoverClient does"},
	{"MISCONF", "Redis cannot save to its disk: see its log; or set stop-writes-on-bgsave-error no"},
	{"unknown command", "this server has no scripts: EVAL and EVALSHA are required"},
	{"max number of clients", "raise maxclients in Redis, or lower PoolSize in the clients' options"},
	{"DB index is out of range", "set DB in the Redis client's options to one that Redis has"},
}

// remedy is what to change about an error; "" where Redis is just not there, or the error says it.
func remedy(class StoreErrorClass, err error) string {
	switch class {
	case StoreRefused, StoreNotReady:
		for _, r := range remedies {
			if strings.Contains(err.Error(), r.words) {
				return r.change
			}
		}
	case StoreNoConnection:
		return "if Redis itself answers, raise PoolSize in the client's options"
	}
	return ""
}

// BreakerOpened implements redisstore.Listener.
func (c *complaints) BreakerOpened(addr string) {
	c.about[aboutBreakers].say("open "+addr, func(times int) {
		c.logger.Warn("accesslimit: Redis does not answer: it is asked once in a while, and all other calls get their rule's policy at once",
			slog.String("addr", addr), slog.Int("times", times))
	})
}

// BreakerClosed implements redisstore.Listener.
func (c *complaints) BreakerClosed(addr string, after time.Duration) {
	c.about[aboutBreakers].say("closed "+addr, func(times int) {
		c.logger.Info("accesslimit: Redis answers again", slog.String("addr", addr), slog.Duration("after", after), slog.Int("times", times))
	})
}

// Lost implements redisstore.Listener.
func (c *complaints) Lost(addr, how string) {
	c.logger.Warn("accesslimit: Redis was restarted or replaced: what it had not saved or replicated is lost, and those limits start afresh",
		slog.String("addr", addr), slog.String("how", how))
}

// Evicts implements redisstore.Listener.
func (c *complaints) Evicts(addr, policy string) {
	c.about[aboutEviction].say(addr, func(times int) {
		c.logger.Warn("accesslimit: Redis evicts keys when its memory is full, and with them counters that still count: their callers start afresh",
			slog.String("addr", addr), slog.String("maxmemory-policy", policy), slog.String("change", "set maxmemory-policy noeviction"))
	})
}
