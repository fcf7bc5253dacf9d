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

// Server is a redis-server that this program started on a free port. It may be the first master of
// a cluster.
type Server struct {
	Addr    string
	Client  *redis.Client
	process *exec.Cmd
	others  []*Server // masters of the same cluster
}

// StartServer starts a redis-server that keeps nothing on disk. The args come last on its command
// line.
func StartServer(args ...string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", port)}
	args = append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--databases", "32"}, args...)
	s.process = exec.Command("redis-server", args...)
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	s.Client = redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: 2 * time.Minute})
	for range 200 {
		if err = s.Client.Ping(context.Background()).Err(); err == nil {
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Stop()
	return nil, fmt.Errorf("redis-server does not start: %w", err)
}

// freePort returns an unused port. A cluster node also listens on the port 10,000 above it, which
// must be valid too.
func freePort() (string, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port < 55_000 {
			return strconv.Itoa(port), nil
		}
	}
}

// Stop ends the server, and the other masters of its cluster.
func (s *Server) Stop() {
	for _, other := range s.others {
		other.Stop()
	}
	_ = s.Client.Close()
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// Flush deletes all keys and resets every figure of INFO. Scripts stay.
func (s *Server) Flush() error {
	ctx := context.Background()
	return errors.Join(s.Client.FlushAll(ctx).Err(), s.Client.ConfigResetStat(ctx).Err())
}

// Usage is what a server has spent since it started or was flushed.
type Usage struct {
	CPU        time.Duration // of its main thread
	Scripts    int64         // calls of EVALSHA and EVAL
	ScriptTime time.Duration // spent in them
	In, Out    int64         // bytes on the network
}

// Since returns the difference between two usages.
func (u Usage) Since(before Usage) Usage {
	return Usage{u.CPU - before.CPU, u.Scripts - before.Scripts, u.ScriptTime - before.ScriptTime, u.In - before.In, u.Out - before.Out}
}

// Usage returns what the server has spent, or all masters of its cluster together.
func (s *Server) Usage() (Usage, error) {
	info, err := s.Client.Info(context.Background(), "cpu", "commandstats", "stats").Result()
	sum := usageIn(info)
	for _, other := range s.others {
		u, failed := other.Usage()
		sum, err = sum.Since(Usage{-u.CPU, -u.Scripts, -u.ScriptTime, -u.In, -u.Out}), errors.Join(err, failed)
	}
	return sum, err
}

var scriptLine = regexp.MustCompile(`(?m)^cmdstat_(?:evalsha|eval):calls=(\d+),usec=(\d+)`)

// usageIn reads the answer to INFO.
func usageIn(info string) (u Usage) {
	seconds := infoNumber(info, "used_cpu_user_main_thread") + infoNumber(info, "used_cpu_sys_main_thread")
	u.CPU = time.Duration(seconds * float64(time.Second))
	u.In, u.Out = int64(infoNumber(info, "total_net_input_bytes")), int64(infoNumber(info, "total_net_output_bytes"))
	for _, found := range scriptLine.FindAllStringSubmatch(info, -1) {
		calls, _ := strconv.ParseInt(found[1], 10, 64)
		micros, _ := strconv.ParseInt(found[2], 10, 64)
		u.Scripts, u.ScriptTime = u.Scripts+calls, u.ScriptTime+time.Duration(micros)*time.Microsecond
	}
	return u
}

func infoNumber(info, field string) float64 {
	n, _ := strconv.ParseFloat(infoField(info, field), 64)
	return n
}

func infoField(info, field string) string {
	_, rest, _ := strings.Cut(info, "\n"+field+":")
	value, _, _ := strings.Cut(rest, "\r")
	return value
}

// Version returns the version that the server reports.
func (s *Server) Version() string {
	return infoField(s.Client.Info(context.Background(), "server").Val(), "redis_version")
}
