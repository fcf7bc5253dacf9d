package browsertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// fleet is some processes of one service, which share a Redis.
type fleet struct {
	t     testing.TB
	redis *redistest.Server
	addrs []string // where they listen
}

// startFleet starts some processes, with the rules of a file in the folder service. They end with
// the test.
func startFleet(t testing.TB, processes int, rules string) *fleet {
	t.Helper()
	f := &fleet{t: t, redis: redistest.Start(t)}
	for range processes {
		f.addrs = append(f.addrs, startService(t, f.redis.Addr(), rules))
	}
	return f
}

// startService starts a process and returns where it listens.
func startService(t testing.TB, args ...string) (addr string) {
	t.Helper()
	command := exec.Command(service, args...)
	command.Dir, command.Stderr = "service", t.Output()
	stdin, inErr := command.StdinPipe()
	stdout, outErr := command.StdoutPipe()
	if inErr != nil || outErr != nil {
		t.Fatal(inErr, outErr)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, func() {
		_ = stdin.Close()
		if err := bounded.Wait(command); err != nil {
			t.Errorf("the service: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the service does not start: %v", err)
	}
	return strings.TrimSpace(line)
}

// page returns the URL of the operator's page of a process.
func (f *fleet) page(process int) string { return "http://" + f.addrs[process] + "/limits/" }

// answer is the reply to a call.
type answer struct {
	status int
	body   string
}

// call makes a call of a user to a process.
func (f *fleet) call(process int, path, user string) answer {
	f.t.Helper()
	got, err := f.try(process, path, user)
	if err != nil {
		f.t.Fatal(err)
	}
	return got
}

func (f *fleet) try(process int, path, user string) (answer, error) {
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://"+f.addrs[process]+path, nil)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("X-User", url.QueryEscape(user))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(body)}, err
}

// load makes calls of a user to all processes by turns, several a second, until stop is called.
func (f *fleet) load(path, user string, pause time.Duration) (stop func()) {
	f.t.Helper()
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			if _, err := f.try(i%len(f.addrs), path, user); err != nil && f.t.Context().Err() == nil {
				f.t.Errorf("a call of %s: %v", user, err)
				return
			}
			select {
			case <-stopped:
				return
			case <-f.t.Context().Done():
				return
			case <-time.After(pause):
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(stopped)
		<-done
	})
	bounded.Cleanup(f.t, stop)
	return stop
}

// act acts on a subject through the JSON API, as olga.
func (f *fleet) act(name, rule, subject, note string, more map[string]string) {
	f.t.Helper()
	fields := map[string]string{"rule": rule, "subject": subject, "note": note}
	maps.Copy(fields, more)
	body, err := json.Marshal(fields)
	if err != nil {
		f.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.page(0)+"api/"+name, bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	request.SetBasicAuth("olga", "secret")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if reply, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		f.t.Fatalf("%s %v: status %d: %s", name, fields, response.StatusCode, reply)
	}
}
