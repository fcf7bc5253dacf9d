package failure

import (
	"slices"
	"strings"
)

// cause is the meaning of words in an error: the class of a Redis reply that contains any of them,
// and what an operator should change.
type cause struct {
	words  words
	class  Class // "" if they are not Redis's, and the error's type tells its class
	marks  marks
	change string // "" if Redis is only unavailable for now, or the error itself gives advice
}

type words []string

type marks uint8

const (
	inScript marks = 1 << iota // in an error of a script, before whose words Redis 6.2 puts others
	noRight                    // our user may not do this, or nobody may because the server has renamed a command
	lasting                    // lasts until somebody changes something, although failures of this class may pass
)

// TooOld is the reply of a server before Redis 6.2 to SET with PXAT in a script.
const TooOld = "ERR syntax error"

// RightsPage is the page that lists the rights of the Redis user.
const RightsPage = "core/REDIS.md"

// Advice that is given for several causes.
const (
	RightsForKeys     = "give the Redis user the rights that " + RightsPage + " lists, for all keys that begin with Options.Prefix"
	RightsForCommands = "give the Redis user the rights that " + RightsPage + " lists; ACL LOG in Redis shows which one is missing"
	TagsForProxy      = `let the proxy choose the server by what stands between { and } in a key (enable_hashtagging: true in Envoy, HashTag "{}" in Predixy)`
)

// causes are the words that Redis, TLS, the network, the Redis client and redisstore use in their
// errors. The first match counts.
var causes = []cause{
	{words{"WRONGTYPE", "NOTACOUNTER", "data string too short"}, Foreign, inScript, ""}, // not a counter's value

	{words{"unreachable: NOAUTH", "unreachable: WRONGPASS", "unreachable: ERR AUTH"}, "", 0, "set SentinelUsername and SentinelPassword in the Redis client's options as the Sentinels have them"},
	{words{"OOM"}, Refused, inScript, "give Redis more maxmemory, or a server of its own; leave maxmemory-policy at noeviction"},
	{words{"NOAUTH", "Protocol error: unauthenticated"}, Refused, 0, "set Username and Password in the Redis client's options"},
	{words{"WRONGPASS", "invalid password"}, Refused, 0, "set Username and Password in the Redis client's options as Redis has them"},
	{words{"AUTH <password> called", "Client sent AUTH"}, Refused, 0, "this server has no password: remove Username and Password from the Redis client's options"},
	{words{"wrong number of arguments for 'auth'"}, Refused, 0, "this server knows no users: remove Username from the Redis client's options, or run Redis 6.2 or later"},
	{words{"DENIED"}, Refused, 0, "Redis is in protected mode: set a password there, and in the Redis client's options"},
	{words{"access one of the keys", "access at least one of the keys", "access a key"}, Refused, inScript | noRight, RightsForKeys},
	{words{"NOPERM", "The user executing the script", "ACL failure in script"}, Refused, inScript | noRight, RightsForCommands},
	{words{"command called from"}, Refused, inScript | noRight, "undo rename-command in Redis's configuration for the commands that " + RightsPage + " lists"},
	{words{"CROSSSLOT"}, Refused, 0, TagsForProxy}, // a call with several hash tags is split
	{words{"This instance has cluster support disabled"}, Refused, 0, "this is not a cluster: make Options.Redis with redis.NewClient"},
	{words{"MISCONF"}, Refused, inScript, "Redis cannot save to its disk: see its log; or set stop-writes-on-bgsave-error no"},
	// Redis 6.2 says this to scripts that read the time before they write.
	{words{"Write commands not allowed after non deterministic commands"}, Refused, inScript, "set lua-replicate-commands yes in Redis's configuration, or run a newer Redis"},
	{words{"unknown command 'sentinel'", "unknown command `sentinel`"}, Refused, 0, "this is no Sentinel: name one in SentinelAddrs, or make Options.Redis with redis.NewClient"},
	{words{"unknown command"}, Refused, 0, "this server has no scripts: EVAL and EVALSHA are required"},
	{words{"nonexistent global variable 'struct'"}, Refused, inScript, "run Redis or Valkey: this server lacks the struct library of Redis's Lua, as miniredis does; core/limittest/TESTING.md says how to test"},
	{words{TooOld}, Refused, inScript, "run a newer Redis, or Valkey"},
	{words{"DB index is out of range"}, Refused, 0, "set DB in the Redis client's options to one that Redis has"},

	{words{"MOVED"}, NotReady, lasting, "this is a cluster: make Options.Redis with redis.NewClusterClient"},
	{words{"READONLY"}, NotReady, inScript, "this is a replica: connect to the master, as redis.NewFailoverClient does"},
	{words{"NOREPLICAS"}, NotReady, inScript, "start Redis's replicas, or lower min-replicas-to-write in its configuration"},
	{words{"max number of clients"}, NotReady, 0, "raise maxclients in Redis, or lower PoolSize in the clients' options"},
	{words{"LOADING", "MASTERDOWN", "BUSY", "CLUSTERDOWN", "ASK"}, NotReady, 0, ""},
	{words{"TRYAGAIN"}, SlotMoving, 0, "end the move of the slot: redis-cli --cluster check shows it, and --cluster fix ends it"},

	{words{"signed by unknown authority"}, "", lasting, "add the CA that signed Redis's certificate to RootCAs in TLSConfig"},
	{words{"x509: certificate is valid for", "x509: cannot validate certificate for"}, "", lasting, "set ServerName in TLSConfig to a name that Redis's certificate has, or connect by that name"},
	{words{"has expired or is not yet valid"}, "", lasting, "renew Redis's certificate, or set the clocks"},
	{words{"certificate required"}, "", lasting, "set Certificates in TLSConfig: Redis demands a certificate of its clients (tls-auth-clients)"},
	{words{"remote error: tls"}, "", lasting, "set Certificates in TLSConfig to one that Redis accepts, and see Redis's log"},
	{words{"does not speak TLS"}, "", lasting, "connect to Redis's TLS port, or with redis:// and without TLSConfig"},
	{words{"the server speaks TLS"}, "", lasting, "connect with rediss:// or TLSConfig, or to Redis's other port"},
	{words{"does not speak Redis's protocol"}, "", lasting, "correct the address in the Redis client's options"},
	{words{"can't parse"}, "", lasting, "correct the address in the Redis client's options: this does not look like Redis"},
	{words{"redis: all sentinels"}, "", 0, "start the Sentinels, or correct SentinelAddrs and MasterName in the Redis client's options"},
	{words{"no Sentinel names"}, "", 0, "start the Sentinels and the master, or correct SentinelAddrs and MasterName in the Redis client's options"},
	{words{"redis: all ring shards"}, "", 0, "start Redis, or correct Addrs in the Redis client's options"},
	{words{"connection refused"}, "", 0, "start Redis, or correct the address in the Redis client's options"},
	{words{"too many colons in address", "unknown port"}, "", lasting, "write HOST:PORT as the address in the Redis client's options; a URL is read by redis.ParseURL"},
	{words{"no such host"}, "", 0, "correct the address in the Redis client's options, or the name service"},
	{words{"nobody answers", "no route to host", "network is unreachable", "i/o timeout"}, "", 0, "correct the address in the Redis client's options, or open the network on the way there"},
	{words{"does not answer"}, "", 0, "see whether Redis hangs: it may be stopped, swap, or run a slow command"},
	{words{"closes new connections"}, "", 0, "see Redis's log, or that of a proxy before it: twemproxy hangs up at HELLO, which go-redis always sends"},
	{words{"longer than Timeout"}, "", 0, "raise Options.Timeout, or keep connections ready with MinIdleConns in the Redis client's options"},
	{words{"of the client's pool were in use"}, "", 0, "raise PoolSize in the Redis client's options"},
	{words{"no turn came in time"}, "", 0, "Redis, or this process, is slower than the calls come: see their CPU time and the slow log of Redis"},
}

// match reports whether any of the words are in a text, or at its start.
func (w words) match(text string, isIn func(text, words string) bool) bool {
	return slices.ContainsFunc(w, func(words string) bool { return isIn(text, words) })
}

// find returns the first cause that matches, or the zero cause.
func find(matches func(cause) bool) cause {
	if i := slices.IndexFunc(causes, matches); i >= 0 {
		return causes[i]
	}
	return cause{class: Unexpected}
}

// ClassOfReply returns the class of an error reply of Redis. It looks at the first words, after
// ERR, and then for the words of an error in a script.
func ClassOfReply(text string) Class {
	start := strings.TrimPrefix(text, "ERR ")
	first := find(func(c cause) bool { return c.class != "" && c.words.match(start, strings.HasPrefix) })
	if first.class != Unexpected {
		return first.class
	}
	return find(func(c cause) bool { return c.marks&inScript != 0 && c.words.match(text, strings.Contains) }).class
}

// LacksRight reports whether an error reply of Redis says that our user may not run a command, or a
// script to its end.
func LacksRight(text string) bool {
	return find(func(c cause) bool { return c.marks&noRight != 0 && c.words.match(text, strings.Contains) }).words != nil
}

// Advice returns what an operator should change about a failure, or "", and whether the failure
// lasts until then.
func Advice(class Class, text string) (change string, lasts bool) {
	var c cause
	switch class {
	case Refused, NotReady, SlotMoving, Unreachable, NoConnection, BreakerOpen:
		c = find(func(c cause) bool { return c.change != "" && c.words.match(text, strings.Contains) })
	}
	return c.change, class.Lasting() || c.class.Lasting() || c.marks&lasting != 0
}

// Change returns what an operator should change about a failure: what Advice returns or, if it
// returns nothing, what may help with the class. It returns "" if the error itself gives advice.
func Change(class Class, text string) string {
	if change, _ := Advice(class, text); change != "" {
		return change
	}
	switch class {
	case Foreign:
		return ""
	case NotReady:
		return "wait until Redis is ready; its log says why it is not"
	case Unexpected:
		return "run Redis 6.2 or later, or Valkey 8.0 or later: something else seems to answer"
	}
	return "see whether Redis runs and keeps up, and whether the address and the network are right"
}
