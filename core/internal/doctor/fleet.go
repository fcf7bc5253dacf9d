package doctor

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// farAhead is how far a server's clock may be from another before that is a finding.
const farAhead = time.Second

// clocks compares the clocks of the servers with this machine's, and with each other.
func (e *exam) clocks() {
	least, most := e.servers[0], e.servers[0]
	for _, s := range e.servers {
		if s.ahead < least.ahead {
			least = s
		}
		if s.ahead > most.ahead {
			most = s
		}
		if s.ahead.Abs() > farAhead {
			e.add(Note, "clock", s, fmt.Sprintf("the clock is %v %s this machine's: windows of days and months follow Redis's clock", s.ahead.Abs().Round(time.Millisecond), relation(s.ahead)),
				"synchronize the clocks of both machines")
		}
	}
	if apart := most.ahead - least.ahead; apart > farAhead {
		e.add(Warning, "clock", nil, fmt.Sprintf("the clocks of %s and %s are %v apart: a window that has ended on one has not ended on the other", least.addr, most.addr, apart.Round(time.Millisecond)),
			"synchronize the clocks of the servers")
	} else if most.ahead.Abs() <= farAhead && least.ahead.Abs() <= farAhead {
		e.add(OK, "clock", nil, "the clocks agree within a second", "")
	}
}

func relation(ahead time.Duration) string {
	if ahead < 0 {
		return "behind"
	}
	return "ahead of"
}

// cluster looks at the state of a cluster.
func (e *exam) cluster(ctx context.Context) {
	if !e.isCluster() {
		return
	}
	s := e.servers[0]
	text, err := e.askText(ctx, s.node, "cluster", "info")
	if err != nil {
		e.unseen("cluster", s, "the state of the cluster", err)
		return
	}
	info := infoOf(text)
	if info["cluster_state"] != "ok" || info["cluster_slots_ok"] != "16384" {
		e.add(Problem, "cluster", s, fmt.Sprintf("the state of the cluster is %s: %s of 16384 slots are served", info["cluster_state"], info["cluster_slots_ok"]),
			"redis-cli --cluster check "+s.addr+"; start the masters that are down, or let their replicas take over")
		return
	}
	e.add(OK, "cluster", s, fmt.Sprintf("all slots are served, by masters: %s", info["cluster_size"]), "")
}

// dials is how many connections are made to find out whether they all end at one server.
const dials = 6

// proxy looks whether something stands between the client and the server.
func (e *exam) proxy(ctx context.Context) {
	client, ok := e.Client.(*redis.Client)
	s := e.servers[0]
	if !ok || s.info["run_id"] == "" {
		return
	}
	runs := map[string]bool{s.info["run_id"]: true}
	for range dials {
		options := *client.Options()            // those of the service's client stay as they are
		options.PushNotificationProcessor = nil // a client has its own
		again := redis.NewClient(&options)
		text, err := e.askText(ctx, redisstore.ByContext(again, e.Timeout), "info", "server")
		again.Close()
		if err != nil {
			e.unseen("proxy", s, "whether all connections end at one server", err)
			return
		}
		runs[infoOf(text)["run_id"]] = true
	}
	_, port, _ := net.SplitHostPort(s.addr)
	switch {
	case len(runs) > 1:
		e.add(Problem, "proxy", s, fmt.Sprintf("%d connections ended at %d servers: each of them has counters of its own", dials+1, len(runs)),
			"let the proxy choose the server by the key, as core/REDIS.md says, or connect to one server")
	case port != "" && port != s.info["tcp_port"] && client.Options().TLSConfig == nil: // INFO does not tell a second port for TLS
		e.add(Note, "proxy", s, fmt.Sprintf("the server listens at port %s, so a proxy or a mapping of ports is in between", s.info["tcp_port"]), "see what core/REDIS.md demands of proxies")
	default:
		e.add(OK, "proxy", s, "all connections end at one server", "")
	}
}

// lookedAt is how many keys of a server are looked at, and perScan how many of them at once.
const lookedAt, perScan = 100_000, 1000

// writers looks for keys under the prefix that this library has not written.
func (e *exam) writers(ctx context.Context) {
	seen, foreign := 0, []string(nil)
	for _, s := range e.servers {
		if s.replica {
			continue
		}
		keys, all, err := e.foreign(ctx, s)
		if err != nil {
			e.unseen("writers", s, "whether others write under the prefix", err)
			return
		}
		seen, foreign = seen+all, append(foreign, keys...)
	}
	if len(foreign) > 0 {
		shown := fmt.Sprintf("%.*q", 64, foreign[0])
		e.add(Warning, "writers", nil, fmt.Sprintf("keys under the prefix that this library has not written: %d of %d, such as %s", len(foreign), seen, shown),
			"choose another Options.Prefix, or let the others choose one")
		return
	}
	if seen == 0 {
		e.add(OK, "writers", nil, fmt.Sprintf("nothing lies under the prefix %q: no service counts there", e.Prefix), "")
		return
	}
	e.add(OK, "writers", nil, fmt.Sprintf("of %d keys under the prefix, none is foreign", seen), "")
}

// foreign returns keys under the prefix that are not of this library, and how many it looked at.
func (e *exam) foreign(ctx context.Context, s *server) (foreign []string, seen int, err error) {
	own, cursor := ownKeys(e.Prefix), "0"
	for range lookedAt / perScan {
		reply, err := ask(ctx, e, func(ctx context.Context) ([]any, error) {
			return s.node.Do(ctx, "scan", cursor, "match", e.Prefix+":*", "count", perScan).Slice()
		})
		if err != nil || len(reply) != 2 {
			return nil, 0, err
		}
		keys, _ := reply[1].([]any)
		for _, key := range keys {
			seen++
			if text, _ := key.(string); !own.MatchString(text) && !strings.HasPrefix(text, e.Prefix+":{~") {
				foreign = append(foreign, text)
			}
		}
		if cursor, _ = reply[0].(string); cursor == "0" {
			break
		}
	}
	return foreign, seen, nil
}
