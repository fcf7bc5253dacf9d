package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

// program returns the path of a program of Prometheus.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: \"make prometheus\" installs it", err)
	}
	return path
}

// server is a running Prometheus.
type server struct {
	t    *testing.T
	addr string
}

// startPrometheus starts a Prometheus with this configuration, until the test ends.
func startPrometheus(t *testing.T, config string) *server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{t, freeAddr(t)}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+s.addr)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("Prometheus says:\n%s", text)
		}
	})
	return s
}

func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// sample is a value of a series.
type sample struct {
	labels map[string]string
	value  float64
}

// query evaluates an expression. ok reports whether Prometheus answered.
func (s *server) query(expr string, at time.Time) (found []sample, ok bool) {
	s.t.Helper()
	form := url.Values{"query": {expr}, "time": {strconv.FormatInt(at.Unix(), 10)}}
	reply, err := http.PostForm("http://"+s.addr+"/api/v1/query", form)
	if err != nil {
		return nil, false
	}
	defer reply.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			ResultType string
			Result     []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(reply.Body).Decode(&answer); err != nil || reply.StatusCode == http.StatusServiceUnavailable {
		return nil, false
	}
	if answer.Error != "" || answer.Data.ResultType != "vector" {
		s.t.Fatalf("%s: %s %s", expr, answer.Error, answer.Data.ResultType)
	}
	for _, r := range answer.Data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			s.t.Fatal(err)
		}
		found = append(found, sample{r.Metric, value})
	}
	return found, true
}

// await waits until an expression has a result.
func (s *server) await(expr string, at time.Time) {
	s.t.Helper()
	for range 600 {
		if found, ok := s.query(expr, at); ok && len(found) > 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Fatalf("Prometheus has no result of %s", expr)
}
