package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// found returns the findings of an examination of servers, as levels, codes and texts.
func found(examine func(*exam), servers ...*server) (all []string) {
	e := &exam{Patient: &Patient{Client: new(redis.Client), Prefix: "p", Timeout: time.Second}, servers: servers}
	examine(e)
	for _, f := range e.findings {
		all = append(all, strings.TrimSpace(string(f.Level)+" "+f.Code+" "+f.Server)+": "+f.Text)
	}
	return all
}

// want compares findings with the wanted ones, of which each is the beginning of one.
func want(t *testing.T, got []string, wants ...string) {
	t.Helper()
	if !slices.EqualFunc(got, wants, strings.HasPrefix) {
		t.Errorf("found %q, want %q", got, wants)
	}
}

func TestClocks(t *testing.T) {
	at := func(addr string, ahead time.Duration) *server { return &server{addr: addr, ahead: ahead} }
	want(t, found((*exam).clocks, at("a", time.Second), at("b", 0)), "ok clock: ")
	want(t, found((*exam).clocks, at("a", 3*time.Second), at("b", 2500*time.Millisecond)),
		"note clock a: the clock is 3s ahead of this machine's", "note clock b: the clock is 2.5s ahead of")
	want(t, found((*exam).clocks, at("a", -time.Minute), at("b", 0)),
		"note clock a: the clock is 1m0s behind this machine's", "warning clock: the clocks of a and b are 1m0s apart")
}

// info returns a server with these lines of INFO.
func info(lines ...string) *server { return &server{info: infoOf(strings.Join(lines, "\r\n"))} }

func TestVersions(t *testing.T) {
	for number, level := range map[string]string{
		"redis_version:6.0.16": "problem", "redis_version:5.0": "problem", "redis_version:6.2.6": "note", "redis_version:6.2.7": "ok", "redis_version:8.0.1": "ok",
		"redis_version:7.2.4\r\nvalkey_version:8.0.1": "ok", "redis_version:nonsense": "problem", "": "note",
	} {
		want(t, found(func(e *exam) { e.version(t.Context(), e.servers[0]) }, info(number)), level+" version: ")
	}
}

func TestReplicas(t *testing.T) {
	for _, test := range []struct {
		level string
		info  *server
	}{
		{"note", info()},
		{"note", info("role:master", "connected_slaves:0")},
		{"ok", info("role:master", "connected_slaves:1", "master_repl_offset:2000", "slave0:ip=a,port=1,state=online,offset=1000,lag=0")},
		{"warning", info("role:master", "connected_slaves:1", "master_repl_offset:3000000", "slave0:ip=a,port=1,state=online,offset=1000,lag=9")},
		{"warning", info("role:master", "connected_slaves:1", "slave0:ip=a,port=1,state=wait_bgsave,offset=0,lag=0")},
	} {
		want(t, found(func(e *exam) { e.replication(t.Context(), e.servers[0]) }, test.info), test.level+" replicas: ")
	}
}

// If INFO cannot be read, the findings give Redis's reason: a server may have no INFO.
func TestWithoutInfo(t *testing.T) {
	const why = "ERR unknown command 'info'"
	want(t, found(func(e *exam) {
		e.version(t.Context(), e.servers[0])
		e.eviction(t.Context(), e.servers[0])
		e.memory(t.Context(), e.servers[0])
		e.persistence(t.Context(), e.servers[0])
		e.replication(t.Context(), e.servers[0])
	}, &server{noInfo: errors.New(why)}),
		"note version: the version is not known: "+why, "note eviction: maxmemory-policy is not known: "+why, "note memory: the memory is not known: "+why,
		"note persistence: persistence is not known: "+why, "note replicas: replication is not known: "+why)
}

func TestSaving(t *testing.T) {
	failing := info("aof_enabled:1", "aof_last_write_status:err")
	want(t, found(func(e *exam) { e.persistence(t.Context(), e.servers[0]) }, failing), "problem persistence: the last attempt to save failed")
}

// The keys of this library are its own, and others are not.
func TestOwnKeys(t *testing.T) {
	own := ownKeys("shop")
	for _, key := range []string{
		"shop:{user:alice}:reply:sw2:60000000", "shop:{ip:203.0.113.7}:api%dry:tb4:1000", "shop:{user:alice}:login:st1", "shop:{%rules}:rd1", "shop:{%rules}:rh1",
		"shop:{%audit}:as1", "shop:{%marks}:mh1", "shop:{%pauses}:api:pl1", "shop:{%top}:%all:tr2:29000", "shop:{%top}:ti1", "shop:{%mark3}:mk1",
		"shop:{user:alice}:api%n2-0.8:sw2:60000000", "shop:{x}:month:cw2:mEurope/Berlin",
	} {
		if !own.MatchString(key) {
			t.Errorf("%s is not taken for a key of this library", key)
		}
	}
	for _, key := range []string{"shop:cart", "shop:{user:alice}", "shop:{user:alice}:Session", "shop:{}:a:sw2:1", "other:{a}:b:sw1:1", "shopping:{a}:b:sw1:1"} {
		if own.MatchString(key) {
			t.Errorf("%s is taken for a key of this library", key)
		}
	}
}
