package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/bench/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// tiny measures everything once and very briefly, so its figures mean nothing.
var tiny = settings{
	quick: true, rounds: 1, keys: 100, warm: time.Millisecond, measure: 2 * time.Millisecond, aloneCalls: 100,
	inProcess: time.Millisecond, localRounds: 1, heapKeys: 100, costTimes: 1, costRounds: 1,
	busyWindow: time.Hour, busyCalls: 3, busyFor: time.Millisecond,
}

// A whole run measures all parts and writes their figures.
func TestARun(t *testing.T) {
	t.Chdir(t.TempDir())
	b := &bench{settings: tiny, report: newReport()}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, heading := range []string{"On Redis", "With overrides", "Clusters", "In the process", "Middlewares", "The server"} {
		if !strings.Contains(string(page), "\n## "+heading) {
			t.Errorf("%s has no figures under %q:\n%s", pageFile, heading, page)
		}
	}
	for _, r := range rivals.OnRedis {
		if w := b.weights[r.Name]; weighed(r) && (w.cold <= 0 || w.busy <= 0) {
			t.Errorf("%s has the weight %+v", r.Name, w)
		}
	}
}

// The figures of a part are written before the next part begins, and a part that fails does not
// stop the others.
func TestFiguresAreWrittenAsTheyCome(t *testing.T) {
	t.Chdir(t.TempDir())
	server, err := harness.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	b := &bench{settings: tiny, server: server, report: newReport()}
	written := func(name string) bool {
		text, _ := os.ReadFile(figuresFile)
		return strings.Contains(string(text), "\t"+name+"\t")
	}
	weigh := func(name string) error {
		b.weights[name] = weight{1, 2}
		return nil
	}
	wrong := errors.New("the disk is on fire")
	err = b.measureAll([]part{
		{"first", func() error { return weigh(rivals.TokenBucket) }},
		{"second", func() error {
			if !written(rivals.TokenBucket) {
				t.Error("the figures of the first part are not written when the second begins")
			}
			return wrong
		}},
		{"third", func() error { return weigh(rivals.FixedWindow) }},
	})
	if !errors.Is(err, wrong) || err.Error() != "second: "+wrong.Error() || !written(rivals.FixedWindow) {
		t.Errorf("%v; the third part is written: %v", err, written(rivals.FixedWindow))
	}
}
