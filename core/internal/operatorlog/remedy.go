package operatorlog

import (
	"log/slog"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// describe returns the level at which a failure of the store is logged, and the attributes that
// describe it: the error, its class, and what to change.
func describe(class failure.Class, text string) (level slog.Level, attrs []any) {
	level, attrs = slog.LevelWarn, []any{slog.String("error", text), slog.String("class", string(class))}
	remedy := remedyFor(class, text)
	if class.Lasting() || remedy.lasting {
		level = slog.LevelError
	}
	if remedy.change != "" {
		attrs = append(attrs, slog.String("change", remedy.change))
	}
	return level, attrs
}

// remedy is the advice about an error, and whether the error lasts until somebody follows it.
type remedy struct {
	words, change string
	lasting       bool
}

// remedyFor returns the remedy for an error, or none if Redis is only unavailable for now or the
// error itself gives advice.
func remedyFor(class failure.Class, text string) remedy {
	switch class {
	case failure.Refused, failure.NotReady, failure.Unreachable, failure.NoConnection:
		for _, r := range remedies {
			if strings.Contains(text, r.words) {
				return r
			}
		}
	}
	return remedy{}
}

const (
	rightsForKeys     = "give the Redis user the rights that SECURITY.md lists, for all keys that begin with Options.Prefix"
	changeOfTags      = `let the proxy choose the server by what stands between { and } in a key (hash_tag: "{}" in twemproxy, enable_hashtagging: true in Envoy)`
	rightsForCommands = "give the Redis user the rights that SECURITY.md lists; ACL LOG in Redis shows which one is missing"
)

// changeOfRights returns what to change about a missing right: the keys, if the error is about
// these, and otherwise the rights that are given.
func changeOfRights(err error, rights string) slog.Attr {
	if r := remedyFor(failure.Refused, err.Error()); r.change == rightsForKeys {
		rights = rightsForKeys
	}
	return slog.String("change", rights)
}

// remedies are found by words that Redis, TLS or the network use in their errors. The first match
// counts.
var remedies = []remedy{
	{"OOM", "give Redis more maxmemory, or a server of its own; leave maxmemory-policy at noeviction", true},
	{"NOAUTH", "set Username and Password in the Redis client's options", true},
	{"unauthenticated", "set Username and Password in the Redis client's options", true},
	{"WRONGPASS", "set Username and Password in the Redis client's options as Redis has them", true},
	{"invalid password", "set Username and Password in the Redis client's options as Redis has them", true},
	{"AUTH <password> called", "this server has no password: remove Username and Password from the Redis client's options", true},
	{"Client sent AUTH", "this server has no password: remove Username and Password from the Redis client's options", true},
	{"'auth'", "this server knows no users: remove Username from the Redis client's options, or run Redis 6.2 or later", true},
	{"DENIED", "Redis is in protected mode: set a password there, and in the Redis client's options", true},
	{"access one of the keys", rightsForKeys, true},
	{"access at least one of the keys", rightsForKeys, true},
	{"access a key", rightsForKeys, true},
	{"NOPERM", rightsForCommands, true},
	{"The user executing the script", rightsForCommands, true},
	{"ACL failure in script", rightsForCommands, true},
	{"command called from", "undo rename-command in Redis's configuration for the commands that SECURITY.md lists", true},
	{"CROSSSLOT", changeOfTags, true}, // a call with several hash tags is split
	{"MOVED", "this is a cluster: make Options.Redis with redis.NewClusterClient", true},
	{"cluster support disabled", "this is not a cluster: make Options.Redis with redis.NewClient", true},
	{"READONLY", "this is a replica: connect to the master, as redis.NewFailoverClient does", false},
	{"NOREPLICAS", "start Redis's replicas, or lower min-replicas-to-write in its configuration", false},
	{"MISCONF", "Redis cannot save to its disk: see its log; or set stop-writes-on-bgsave-error no", true},
	{"after non deterministic commands", "set lua-replicate-commands yes in Redis's configuration, or run a newer Redis", true},
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
