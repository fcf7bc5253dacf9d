package redisstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// These promises hold for every deployment and every kind of client.
func TestEveryDeployment(t *testing.T) {
	sharing := make(map[*redistest.Server][]deployment) // those with the same servers, which stop for all of them
	for _, d := range deployments(t) {
		sharing[d.servers[0]] = append(sharing[d.servers[0]], d)
	}
	for _, all := range sharing {
		t.Run(all[0].name, func(t *testing.T) {
			t.Parallel() // nearly all of the time is spent waiting for servers that are stopped
			for _, d := range all {
				t.Run(d.name, d.keepsPromises)
			}
		})
	}
}

func (d deployment) keepsPromises(t *testing.T) {
	d.holds(t, "a lost reply is charged once", d.lostReply)
	if d.slot != nil {
		d.holds(t, "an unhealthy server does not slow down the others", d.oneUnhealthy)
		d.holds(t, "a server that will probably refuse is asked first", d.askedFirst)
		d.holds(t, "a server that is asked first may be unhealthy", d.askedFirstIsUnhealthy)
		d.holds(t, "if a required one fails, the other is given back", d.givenBackForTheRequired)
		d.holds(t, "if one fails that is not required, the other stays charged", d.notGivenBack)
		d.holds(t, "if the caller leaves, the charge is given back", d.givenBackWhenTheCallerLeaves)
	}
}

func (d deployment) holds(t *testing.T, what string, test func(*testing.T)) { t.Run(what, test) }

// A call whose reply is lost fails. It is not sent again, as go-redis would by its default options.
func (d deployment) lostReply(t *testing.T) {
	for _, f := range faults {
		p := startProxy(t)
		// The client's reads give up early, so that there is time left to try again.
		client := d.connect(t, options{dial: p.dial, readTimeout: timeout * 3 / 4})
		c := counter(f.name+t.Name(), daily(t, 100))
		newStore(t, client, patient).mustTake(t, c) // it connects, which may take longer
		s := newStore(t, client, timeout)
		p.fault.Store(f)
		s.takeInTime(t, false, c)
		wantSoon(t, "the reply is lost", func() bool { return p.lost.Load() == 1 })
		if left := newStore(t, d.connect(t, options{}), patient).left(t, c); left != 98 {
			t.Errorf("%s: %d charged, want 2: one call that was answered and one whose reply was lost", f.name, 100-left)
		}
	}
}

// A server that does not know the script is sent its text, once.
func TestUnknownScriptIsSentAsText(t *testing.T) {
	server, client := startOne(t)
	s, c := newStore(t, client, patient), counter("subject", daily(t, 100))
	for i, want := range []string{"calls=1", "calls=1", "calls=1", "calls=2"} {
		if i == 3 {
			client.ScriptFlush(context.Background())
		}
		s.mustTake(t, c)
		if got := evals(t, server.Client(t)); got != want {
			t.Errorf("after call %d: EVAL %s, want %s", i, got, want)
		}
	}
	if left := s.left(t, c); left != 96 {
		t.Errorf("%d left of 100 after 4 calls", left)
	}
}

// evals returns how often the server was sent a script's text.
func evals(t *testing.T, client *redis.Client) string {
	t.Helper()
	stats, err := client.InfoMap(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var calls int
	_, _ = fmt.Sscanf(stats["Commandstats"]["cmdstat_eval"], "calls=%d", &calls)
	return fmt.Sprintf("calls=%d", calls)
}
