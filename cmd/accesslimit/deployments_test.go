package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// onRedis is the command accesslimit, with a Redis and a file with rules.
type onRedis struct{ dir, url string }

func newOnRedis(t *testing.T) *onRedis {
	t.Helper()
	c := &onRedis{dir: t.TempDir()}
	const rules = "version: 1\nrules:\n  - {name: api, limit: 100/m}\n"
	if err := os.WriteFile(filepath.Join(c.dir, "limits.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs the command, and returns what it prints and its status.
func (c *onRedis) run(t *testing.T, args string) (out string, status int) {
	t.Helper()
	run := exec.Command("accesslimit", strings.Fields(args)...)
	run.Dir, run.Env = c.dir, append(os.Environ(), "REDIS_URL="+c.url, "ACCESSLIMIT_RULES=limits.yaml")
	printed, err := run.CombinedOutput()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return string(printed), ended.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return string(printed), 0
}

// The command acts on a cluster and behind Sentinels, which its URL names.
func TestDeployments(t *testing.T) {
	c := newOnRedis(t)
	cluster, sentinels := redistest.StartCluster(t), []string(nil)
	redistest.StartSentinel(t).Client(t, func(o *redis.FailoverOptions) { sentinels = o.SentinelAddrs })
	for name, url := range map[string]string{
		"cluster":  "redis-cluster://" + cluster.Addrs()[0] + "?addr=" + cluster.Addrs()[1],
		"sentinel": "redis-sentinel://" + sentinels[0] + "?master_name=limits&addr=" + sentinels[1],
	} {
		t.Run(name, func(t *testing.T) {
			c.url = url
			for _, step := range []struct{ args, says string }{
				{"ban api 203.0.113.7 -for 1h -note scraper", `(?m)^ip:203.0.113.7 is banned from "api" until`},
				{"bans", `^api  ip:203.0.113.7  until .*, by hand \(.*: scraper\)`},
				{"override api 203.0.113.7 7/m -note more", "7/m, until it is removed"},
				{"inspect 203.0.113.7", `7/m \(override\): 0 used`},
				{"marks export", `(?m)^{"rule":"api","subject":"ip:203.0.113.7","mark":"limited","limits":"7/m","since":`},
				{"unban api 203.0.113.7 -note over", "is not banned"},
				{"publish limits.yaml -note first", "^Published version 1 "},
				{"history", "^version 1 "},
				{"top", "(?m)^refused most since"},
				{"audit", "unban  +api ip:203.0.113.7"},
				{"doctor", `(?m)^ok +rights`},
				{"doctor", `(?m)^0 problems`},
			} {
				if out, status := c.run(t, step.args); status != 0 || !regexp.MustCompile(step.says).MatchString(out) {
					t.Errorf("%s: status %d:\n%s", step.args, status, out)
				}
			}
		})
	}
	refusing := 0 // all but the master of the document
	for _, addr := range cluster.Addrs() {
		c.url = "redis://" + addr
		if out, status := c.run(t, "doctor"); status != 1 || !strings.Contains(out, "in a URL, write redis-cluster://") {
			t.Errorf("doctor at one server of a cluster: status %d:\n%s", status, out)
		}
		if out, status := c.run(t, "history"); status == 3 && strings.Contains(out, "let the URL begin with redis-cluster") {
			refusing++
		}
	}
	if refusing != len(cluster.Addrs())-1 {
		t.Errorf("%d servers refuse to read the document", refusing)
	}
}
