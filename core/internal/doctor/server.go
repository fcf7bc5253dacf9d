package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// server is one server of a patient, which has answered.
type server struct {
	node    commander
	addr    string
	options *redis.Options    // of its client, or nil if that is of a type of the service's own
	info    map[string]string // what INFO says; empty if it cannot be read
	noInfo  error             // why INFO cannot be read
	trips   []time.Duration   // of PING, sorted
	ahead   time.Duration     // of its clock, compared with this process's; may be negative
	replica bool
}

// commander is a client of one server.
type commander interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
	Pipelined(ctx context.Context, do func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// connect finds the servers that answer.
func (e *exam) connect(ctx context.Context) {
	nodes, err := e.nodes(ctx)
	if err != nil {
		e.unreachable(ctx, &server{}, err)
		return
	}
	if ring, is := e.Client.(*redis.Ring); is && len(nodes) < len(ring.Options().Addrs) { // it leaves out those that it knows to be down
		e.add(Problem, "connection", nil, fmt.Sprintf("of %d servers of the ring, %d answer", len(ring.Options().Addrs), len(nodes)),
			"start the others, or correct Addrs in the Redis client's options")
	}
	for _, s := range nodes {
		if err := e.meet(ctx, s); err != nil {
			e.unreachable(ctx, s, err)
			continue
		}
		e.servers = append(e.servers, s)
	}
}

// unreachable adds that a server does not answer. The class of the error and what to do are those that
// the log of a service would name. If they do not say what to do, perhaps only one side uses TLS:
// then a client with TLS gets no answer, and one without it is disconnected.
func (e *exam) unreachable(ctx context.Context, s *server, err error) {
	text, do := e.adviceOn(err)
	if do == "" && s.options != nil && (s.options.TLSConfig != nil || errors.Is(err, io.EOF) || strings.Contains(text, "connection reset")) {
		if cause := redisstore.Cause(ctx, s.options, e.Timeout); cause != nil && failure.CallersEnd(ctx) == nil {
			text, do = e.adviceOn(cause)
		}
	}
	e.add(Problem, "connection", s, "there is no answer: "+text, cmp.Or(do, failure.Change(failure.Unreachable, text)))
}

// adviceOn returns an error's text, and what to do about it or "".
func (e *exam) adviceOn(err error) (text, do string) {
	text = failure.Text(err)
	class := failure.ClassOfReply(text)
	if class == failure.Unexpected {
		class = failure.Unreachable
	}
	do, _ = failure.Advice(class, text)
	return text, do
}

// nodes returns the servers of the client, in the order of their addresses.
func (e *exam) nodes(ctx context.Context) ([]*server, error) { return ask(ctx, e, e.find) }

func (e *exam) find(ctx context.Context) (all []*server, err error) {
	var mu sync.Mutex
	add := func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, &server{node: redisstore.ByContext(node, e.Timeout), addr: node.Options().Addr, options: node.Options()})
		return nil
	}
	switch client := e.Client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachShard(ctx, add)
	case *redis.Ring:
		err = client.ForEachShard(ctx, add)
	case *redis.Client:
		_ = add(ctx, client)
		all[0].addr, err = peerOf(ctx, client)
	default: // a type of the service's own may stand for several servers
		all = append(all, &server{node: client, addr: "the server"})
	}
	slices.SortFunc(all, func(a, b *server) int { return strings.Compare(a.addr, b.addr) })
	return all, err
}

// peerOf returns the address that a client connects to. The options of a client that asks Sentinels do
// not have it.
func peerOf(ctx context.Context, client *redis.Client) (addr string, err error) {
	options := client.Options()
	if options.Addr != "FailoverClient" {
		return options.Addr, nil
	}
	conn, err := options.Dialer(ctx, options.Network, options.Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.RemoteAddr().String(), nil
}

// pings is how often a server is asked for the time, to measure the trip.
const pings = 20

// meet asks a server for what it says of itself.
func (e *exam) meet(ctx context.Context, s *server) error {
	shortest := e.Timeout
	for range pings {
		began := time.Now()
		reply, err := ask(ctx, e, func(ctx context.Context) ([]any, error) { return s.node.Do(ctx, "time").Slice() })
		if failure.LacksRight(fmt.Sprint(err)) { // rights says so
			err = nil
		}
		if err != nil {
			return err
		}
		trip := time.Since(began)
		if now, ok := timeOf(reply); ok && trip < shortest {
			shortest, s.ahead = trip, now.Sub(began.Add(trip/2)) // the shortest trip tells best
		}
		s.trips = append(s.trips, trip)
	}
	slices.Sort(s.trips)
	text, err := e.askText(ctx, s.node, "info")
	s.info, s.noInfo = infoOf(text), err // without INFO there is less to say
	s.replica = s.info["role"] == "slave"
	return nil
}

// timeOf reads the reply to TIME.
func timeOf(reply []any) (now time.Time, ok bool) {
	if len(reply) != 2 {
		return now, false
	}
	seconds, err1 := strconv.ParseInt(fmt.Sprint(reply[0]), 10, 64)
	micros, err2 := strconv.ParseInt(fmt.Sprint(reply[1]), 10, 64)
	return time.Unix(seconds, micros*1000), err1 == nil && err2 == nil
}

// infoOf returns the fields of a reply to INFO.
func infoOf(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// whySilent returns why INFO lacks a field.
func (s *server) whySilent() error { return cmp.Or(s.noInfo, errors.New("INFO does not say it")) }

// number returns a field of INFO that is a whole number, or 0.
func (s *server) number(field string) int64 {
	n, _ := strconv.ParseInt(s.info[field], 10, 64)
	return n
}
