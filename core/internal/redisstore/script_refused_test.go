package redisstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// early is the version of a Redis before 6.2.7.
var early = regexp.MustCompile(`redis_version:6\.2\.[0-6]\r`)

// While a server takes no writes, the calls that it would charge fail. Those that are refused are
// not charged, so they get their refusals, as if they were decided one by one. The class of the
// others' errors is the same on every server, whose words differ.
func TestRefusalsWhileNothingCanBeWritten(t *testing.T) {
	configure := func(name, value string) func(*testing.T, *redis.Client) error {
		return func(t *testing.T, client *redis.Client) error {
			return client.ConfigSet(t.Context(), name, value).Err()
		}
	}
	for name, test := range map[string]struct {
		class failure.Class
		begin func(*testing.T, *redis.Client) error
	}{
		"out of memory":     {failure.Refused, configure("maxmemory", "1")},
		"too few replicas":  {failure.NotReady, configure("min-replicas-to-write", "1")},
		"a failed snapshot": {failure.Refused, failSnapshot},
		"a replica": {failure.NotReady, func(t *testing.T, client *redis.Client) error {
			return client.Do(t.Context(), "replicaof", "127.0.0.1", "1").Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := startOne(t)
			s := newStore(t, client, patient)
			full, charged := mixOf(t, t.Name()+"full", crowd, 1), mixOf(t, t.Name()+"charged", crowd, 1000)
			full.use(t, s, 1, false)
			untilJoined(t, server, func() { charged.use(t, s, 1, false) })
			if err := test.begin(t, client); err != nil {
				t.Fatal(err)
			}
			if name == "too few replicas" && early.MatchString(client.Info(t.Context(), "server").Val()) {
				return // these servers apply the setting to commands, but not to scripts
			}
			together(callers, func(i int) {
				for n := range 5 {
					if v := s.answerOn(t, full.counter((i+n)%full.keys)); v.RetryAfter == 0 {
						t.Errorf("a used-up counter: %+v", v)
					}
					if v := s.answerOn(t, charged.counter((i+n)%charged.keys)); v.Err == nil || failure.ClassOf(v.Err) != test.class {
						t.Errorf("a counter that cannot be written: %+v, want an error of class %s", v, test.class)
					}
				}
			})
		})
	}
}

// answerOn returns the server's answer on a counter. A busy server may not answer for so long that the
// breaker opens.
func (s store) answerOn(t *testing.T, c algorithm.Counter) (v algorithm.Verdict) {
	redistest.WaitUntil(func() bool {
		v = s.take(t.Context(), c)[0]
		return v.Err == nil || failure.ClassOf(v.Err) != failure.BreakerOpen
	}, patient)
	return v
}

// failSnapshot makes a server fail to save a snapshot, because a directory has the file's name.
// Then the server takes no writes.
func failSnapshot(t *testing.T, client *redis.Client) error {
	dir := client.ConfigGet(t.Context(), "dir").Val()["dir"]
	if err := os.Mkdir(filepath.Join(dir, "dump.rdb"), 0o700); err != nil {
		return err
	}
	if err := errors.Join(client.ConfigSet(t.Context(), "save", "3600 1").Err(), client.BgSave(t.Context()).Err()); err != nil {
		return err
	}
	if !redistest.WaitUntil(func() bool {
		return strings.Contains(client.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	}, patient) {
		return errors.New("the snapshot did not fail")
	}
	return nil
}
