package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server of this program's own, on a free port, or a cluster of them.
type Server struct {
	Cluster bool
	nodes   []*node
}

type node struct {
	addr    string
	process *exec.Cmd
	client  *redis.Client
}

// StartServer starts a redis-server that keeps nothing on disk.
func StartServer() (*Server, error) {
	n, err := startNode()
	if err != nil {
		return nil, err
	}
	return &Server{nodes: []*node{n}}, nil
}

func startNode(args ...string) (*node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	n := &node{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	args = append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--databases", "32"}, args...)
	n.process = exec.Command("redis-server", args...)
	if err := n.process.Start(); err != nil {
		return nil, err
	}
	n.client = redis.NewClient(&redis.Options{Addr: n.addr, ReadTimeout: 2 * time.Minute})
	err = await(func() error { return n.client.Ping(context.Background()).Err() })
	if err != nil {
		n.stop()
		return nil, fmt.Errorf("redis-server does not start: %w", err)
	}
	return n, nil
}

// freePort returns a port on which nobody listens. It is below 55,535, because a cluster node also
// listens 10,000 above.
func freePort() (int, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port < 55_000 {
			return port, nil
		}
	}
	return 0, errors.New("no port is free")
}

// await calls ask until it succeeds, for at most ten seconds.
func await(ask func() error) (err error) {
	for range 200 {
		if err = ask(); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

func (n *node) stop() {
	if n.client != nil {
		_ = n.client.Close()
	}
	_ = n.process.Process.Kill()
	_ = n.process.Wait()
}

// Stop ends the servers.
func (s *Server) Stop() {
	for _, n := range s.nodes {
		n.stop()
	}
}

// Addrs returns the addresses of the servers.
func (s *Server) Addrs() (addrs []string) {
	for _, n := range s.nodes {
		addrs = append(addrs, n.addr)
	}
	return addrs
}

// Client returns the harness's own client of the first server.
func (s *Server) Client() *redis.Client { return s.nodes[0].client }

// DB returns a new client of one database of the first server.
func (s *Server) DB(n int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.nodes[0].addr, DB: n, ReadTimeout: 2 * time.Minute})
}

// Flush deletes all keys and resets every figure of INFO. Scripts stay.
func (s *Server) Flush() error {
	var failed error
	for _, n := range s.nodes {
		failed = errors.Join(failed, n.client.FlushAll(context.Background()).Err(),
			n.client.ConfigResetStat(context.Background()).Err())
	}
	return failed
}

// Usage implements Meter. It returns the time that the main threads of all servers spent, the
// number of scripts they ran, and the bytes on the network.
func (s *Server) Usage() (u Usage, err error) {
	for _, n := range s.nodes {
		info, err := n.client.Info(context.Background(), "cpu", "commandstats", "stats").Result()
		if err != nil {
			return u, err
		}
		u.CPU += mainThread(info)
		u.Scripts += scriptCalls(info)
		in, _ := infoNumber(info, "total_net_input_bytes")
		out, _ := infoNumber(info, "total_net_output_bytes")
		u.In, u.Out = u.In+int64(in), u.Out+int64(out)
	}
	return u, nil
}

// mainThread reads INFO cpu. A server before 6.2 does not report its threads separately.
func mainThread(info string) time.Duration {
	for _, suffix := range []string{"_main_thread", ""} {
		user, known := infoNumber(info, "used_cpu_user"+suffix)
		system, _ := infoNumber(info, "used_cpu_sys"+suffix)
		if known {
			return time.Duration((user + system) * float64(time.Second))
		}
	}
	return 0
}

func infoNumber(info, field string) (float64, bool) {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return n, err == nil
		}
	}
	return 0, false
}

var scriptLine = regexp.MustCompile(`(?m)^cmdstat_(?:evalsha|eval|fcall|evalsha_ro|eval_ro):calls=(\d+)`)

// scriptCalls returns the number of script calls by clients, from INFO commandstats.
func scriptCalls(info string) (n int64) {
	for _, found := range scriptLine.FindAllStringSubmatch(info, -1) {
		calls, _ := strconv.ParseInt(found[1], 10, 64)
		n += calls
	}
	return n
}

// Version returns the version that the server reports.
func (s *Server) Version() string {
	info, _ := s.Client().Info(context.Background(), "server").Result()
	for line := range strings.Lines(info) {
		if v, found := strings.CutPrefix(line, "redis_version:"); found {
			return strings.TrimSpace(v)
		}
	}
	return "of an unknown version"
}
