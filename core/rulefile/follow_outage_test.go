package rulefile

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/fleetrules"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A process starts while Redis is down, with its fallback, and takes up the document when Redis is
// back.
func TestStartWhileRedisIsDown(t *testing.T) {
	server := redistest.Start(t)
	d := newDocument(t, server.Client(t, hurried))
	server.Kill()
	if _, err := Follow(newLimiter(t), registered, d); !errors.Is(err, core.ErrStore) {
		t.Errorf("without a fallback: %v", err)
	}
	file := write(t, "limits.yaml", perHour(3))
	rules, files := start(t, d, fallback()), start(t, d, Files(file))
	rules.await(1, "core: the store did not answer")
	files.await(3, "core: the store did not answer")
	if v := rules.set.Document(); v != (Version{}) || !strings.HasPrefix(rules.set.Version(), "fallback-") || !rules.stats().Fallback {
		t.Errorf("the version in force is %+v, %q, %+v", v, rules.set.Version(), rules.stats())
	}
	if rules.log.Count("level=WARN", "the rules cannot be read, so the fallback is in force") != 1 {
		t.Error(rules.log.String())
	}
	server.Restart()
	rules.await(1, "there is no document")
	publish(t, d, perHour(2), Version{})
	rules.await(2, "")
	files.await(2, "")
}

// hurried makes a client try a server that is down once.
func hurried(o *redis.Options) { o.DialerRetries, o.DialerRetryTimeout = 1, time.Millisecond }

// Without a document, the fallback is in force, and what is wrong with it is an error at the start.
func TestFallback(t *testing.T) {
	d := newDocument(t, redistest.Start(t).Client(t))
	if _, err := Follow(newLimiter(t), registered, d); !errors.Is(err, errNoDocument) {
		t.Errorf("without a document: %v", err)
	}
	file := write(t, "limits.yaml", limitText("1/h"))
	for _, test := range []struct {
		fallback []Fallback
		want     string
	}{
		{[]Fallback{Files(file), fallback()}, "is also at " + file + ":3:5"},
		{[]Fallback{Files(file + "l")}, "cannot be read"},
		{[]Fallback{Rules(core.Rule{Limit: core.PerHour(1)})}, "a rule has no Name"},
		{[]Fallback{Rules(core.Rule{Name: "api"})}, "follow_outage_test.go:"},
	} {
		var wrong *Error
		if _, err := Follow(newLimiter(t), registered, d, test.fallback...); !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
	both := []Fallback{Files(file), Rules(core.Rule{Name: "other", Limit: core.PerHour(9)})}
	p := start(t, d, both...)
	p.await(1, "there is no document")
	if _, err := p.set.Guard("other"); err != nil {
		t.Error(err)
	}
	if s := p.stats(); s.Problem != "missing" || !s.Fallback || p.log.Count("level=WARN", "there is no document with rules, so the fallback is in force") != 1 {
		t.Errorf("a first start has %+v: %s", s, p.log.String())
	}
	lacks := publish(t, d, perHour(2), Version{})
	later := start(t, d, both...)
	for _, p := range []*process{p, later} {
		p.await(1, `rule "other": is in the fallback, and missing in version 1 of the document`)
		logged := func() bool {
			return p.log.Count("level=ERROR", "new rules cannot be used, so the fallback is in force") == 1
		}
		if !redistest.WaitUntil(logged, patient) || !p.stats().Fallback { // the Stats show it before the log does
			t.Errorf("%+v: %s", p.stats(), p.log.String())
		}
	}
	publish(t, d, perHour(3)+"  - {name: other, limit: 8/h}\n", lacks)
	later.await(3, "")
	if later.stats().Fallback {
		t.Errorf("with the document in force: %+v", later.stats())
	}
}

// While Redis hangs, a process starts with its fallback, and a Set can be closed. It follows no
// longer then.
func TestCloseWhileRedisHangs(t *testing.T) {
	server := redistest.Start(t)
	d := newDocument(t, server.Client(t))
	v := publish(t, d, perHour(2), Version{})
	hurried := &Document{store: fleetrules.NewStore(server.Client(t), "accesslimit", time.Second), period: d.period}
	p := start(t, hurried)
	server.Stop()
	p.await(2, "the store did not answer")
	start(t, hurried, fallback()).await(1, "the store did not answer")
	var both sync.WaitGroup
	for range 2 {
		both.Go(p.set.Close)
	}
	both.Wait()
	server.Continue()
	publish(t, d, perHour(3), v)
	if err := p.set.Reload(); err == nil || p.policy() != 2 {
		t.Errorf("after Close: %v, and calls are decided by %d/h", err, p.policy())
	}
}
