package core

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// storeFailed says that a call got no answer from the store, and what became of it: once for each kind of error and policy.
func (c *complaints) storeFailed(name, policy string, err error) {
	class, name, why := classOf(err), strings.Clone(name), kept(err)
	c.about[aboutStore].say(string(class)+policy, func(times int) {
		level, attrs := advice(class, why)
		attrs = append(attrs, slog.String("latest_rule", name), slog.String("policy", policy), slog.Int("calls", times))
		c.logger.Log(context.Background(), level, "accesslimit: the store does not answer", attrs...)
	})
}

// advice returns the level at which a failure of the store is logged, and the attributes that
// describe it: the error, its class, and what to change.
func advice(class StoreErrorClass, why string) (level slog.Level, attrs []any) {
	level, attrs = slog.LevelWarn, []any{slog.String("error", why), slog.String("class", string(class))}
	change, wrong := remedy(class, why)
	if class == StoreRefused || class == StoreForeignValue || wrong {
		level = slog.LevelError
	}
	if change != "" {
		attrs = append(attrs, slog.String("change", change))
	}
	return level, attrs
}

// remedies holds advice for errors, by words that Redis, TLS or the network use in them.
var remedies = []struct {
	words, change string
	wrong         bool // it lasts until somebody changes something
}{
	{"OOM", "give Redis more maxmemory, or a server of its own; leave maxmemory-policy at noeviction", true},
	{"NOAUTH", "set Username and Password in the Redis client's options", true},
	{"unauthenticated", "set Username and Password in the Redis client's options", true},
	{"WRONGPASS", "set Username and Password in the Redis client's options as Redis has them", true},
	{"invalid password", "set Username and Password in the Redis client's options as Redis has them", true},
	{"AUTH <password> called", "this server has no password: remove Username and Password from the Redis client's options", true},
	{"Client sent AUTH", "this server has no password: remove Username and Password from the Redis client's options", true},
	{"'auth'", "this server knows no users: remove Username from the Redis client's options, or run Redis 6.2 or later", true},
	{"DENIED", "Redis is in protected mode: set a password there, and in the Redis client's options", true},
	{"NOPERM", "give the Redis user the rights that SECURITY.md lists", true},
	{"The user executing the script", "give the Redis user the rights that SECURITY.md lists", true},
	{"ACL failure in script", "give the Redis user the rights that SECURITY.md lists", true},
	{"CROSSSLOT", "this is a cluster: make Options.Redis with redis.NewClusterClient", true},
	{"MOVED", "this is a cluster: make Options.Redis with redis.NewClusterClient", true},
	{"cluster support disabled", "this is not a cluster: make Options.Redis with redis.NewClient", true},
	{"READONLY", "this is a replica: connect to the master, as redis.NewFailoverClient does", false},
	{"MISCONF", "Redis cannot save to its disk: see its log; or set stop-writes-on-bgsave-error no", true},
	{"unknown command", "this server has no scripts: EVAL and EVALSHA are required", true},
	{"or later is required", "run a newer Redis, or Valkey", true},
	{"max number of clients", "raise maxclients in Redis, or lower PoolSize in the clients' options", false},
	{"DB index is out of range", "set DB in the Redis client's options to one that Redis has", true},

	{"signed by unknown authority", "add the CA that signed Redis's certificate to RootCAs in TLSConfig", true},
	{"x509: certificate is valid for", "set ServerName in TLSConfig to a name that Redis's certificate has, or connect by that name", true},
	{"x509: cannot validate certificate for", "set ServerName in TLSConfig to a name that Redis's certificate has, or connect by that name", true},
	{"has expired or is not yet valid", "renew Redis's certificate, or set the clocks", true},
	{"certificate required", "set Certificates in TLSConfig: Redis demands a certificate of its clients (tls-auth-clients)", true},
	{"remote error: tls", "set Certificates in TLSConfig to one that Redis accepts, and see Redis's log", true},
	{"does not speak TLS", "connect to Redis's TLS port, or with redis:// and without TLSConfig", true},
	{"the server speaks TLS", "connect with rediss:// or TLSConfig, or to Redis's other port", true},
	{"does not speak Redis's protocol", "correct the address in the Redis client's options", true},
	{"can't parse", "correct the address in the Redis client's options: this does not look like Redis", true},
	{"redis: all sentinels", "start the Sentinels, or correct SentinelAddrs and MasterName in the Redis client's options", false},
	{"no Sentinel names", "start the Sentinels and the master, or correct SentinelAddrs and MasterName in the Redis client's options", false},
	{"redis: all ring shards", "start Redis, or correct Addrs in the Redis client's options", false},
	{"connection refused", "start Redis, or correct the address in the Redis client's options", false},
	{"no such host", "correct the address in the Redis client's options, or the name service", false},
	{"nobody answers", "correct the address in the Redis client's options, or open the network on the way there", false},
	{"no route to host", "correct the address in the Redis client's options, or open the network on the way there", false},
	{"network is unreachable", "correct the address in the Redis client's options, or open the network on the way there", false},
	{"does not answer", "see whether Redis hangs: it is stopped, swaps, or runs a slow command", false},
	{"i/o timeout", "correct the address in the Redis client's options, or open the network on the way there", false},
	{"closes new connections", "see Redis's log, or that of a proxy before it", false},
	{"longer than Timeout", "raise Options.Timeout, or keep connections ready with MinIdleConns in the Redis client's options", false},

	{"of the client's pool were in use", "raise PoolSize in the Redis client's options", false},
	{"no turn came in time", "Redis, or this process, is slower than the calls come: see their CPU time and the slow log of Redis", false},
}

// remedy returns what to change about an error, and whether it lasts until somebody does. change is
// "" if Redis is only unavailable for now, or the error itself says what to do.
func remedy(class StoreErrorClass, why string) (change string, wrong bool) {
	switch class {
	case StoreRefused, StoreNotReady, StoreUnreachable, StoreNoConnection:
		for _, r := range remedies {
			if strings.Contains(why, r.words) {
				return r.change, r.wrong
			}
		}
	}
	return "", false
}

// Unreachable implements redisstore.Listener.
func (c *complaints) Unreachable(addr string, why error) {
	text := kept(why)
	change, wrong := remedy(StoreUnreachable, text)
	c.about[aboutConnections].say(addr, func(times int) {
		level, attrs := slog.LevelWarn, []any{slog.String("error", text), slog.String("addr", addr)}
		if wrong {
			level = slog.LevelError
		}
		if change != "" {
			attrs = append(attrs, slog.String("change", change))
		}
		c.logger.Log(context.Background(), level, "accesslimit: no connection to Redis can be set up", append(attrs, slog.Int("times", times))...)
	})
}

// TooOld implements redisstore.Listener.
func (c *complaints) TooOld(addr, version string) {
	c.about[aboutVersion].say(addr, func(times int) {
		c.logger.Error("accesslimit: this Redis is too old: some limits cannot be counted there, and their rules' policies answer",
			slog.String("addr", addr), slog.String("version", version), slog.String("change", "run Redis 6.2 or later, or Valkey"), slog.Int("times", times))
	})
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
