package rulefile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/internal/fleetrules"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

func historyOf(t *testing.T, d *Document) []Version {
	t.Helper()
	history, err := d.History(background)
	if err != nil {
		t.Fatal(err)
	}
	return history
}

// The current version and the 20 before it are kept, each once and with its text, on every kind of
// client.
func TestHistory(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{
		"single": redistest.Start(t).Client(t), "cluster": redistest.StartCluster(t).Client(t), "ring": redistest.StartRing(t, 2).Client(t),
	} {
		t.Run(name, func(t *testing.T) {
			d := newDocument(t, client)
			if history := historyOf(t, d); len(history) > 0 {
				t.Errorf("before the first version: %v", history)
			}
			var want []Version
			now := Version{}
			for i := range 2 + fleetrules.MostKept {
				now = publish(t, d, limitText(fmt.Sprint(i+1, "/s")), now)
				want = append([]Version{now}, want...)
			}
			if history := historyOf(t, d); !slices.Equal(history, want[:1+fleetrules.MostKept]) {
				t.Errorf("the history is %v, want %v", history, want)
			}
			// A rollback, and an author who comes too late.
			publish(t, d, want[3].Text, now)
			if _, err := d.Write(background, limitText("1/s"), now); err == nil {
				t.Error("a version was replaced that nobody has read")
			}
			if history := historyOf(t, d); history[0].Text != want[3].Text || history[1] != want[0] || history[2] != want[1] {
				t.Errorf("after a rollback: %v", history[:3])
			}
		})
	}
}

// Something else in place of the document or the history keeps nobody from publishing, and is left out.
func TestHistoryOfForeignValues(t *testing.T) {
	client := redistest.Start(t).Client(t)
	d := newDocument(t, client)
	first := publish(t, d, limitText("1/s"), Version{})
	const key = "accesslimit:{%rules}:rh1"
	if err := client.RPush(background, key, "not a document", strings.Repeat("x", 1<<20)).Err(); err != nil {
		t.Fatal(err)
	}
	second := publish(t, d, limitText("2/s"), first)
	if history := historyOf(t, d); !slices.Equal(history, []Version{second, first}) {
		t.Errorf("%v", history)
	}
	if err := client.Set(background, key, "a string", 0).Err(); err != nil {
		t.Fatal(err)
	}
	publish(t, d, limitText("3/s"), second)
	if _, err := d.History(background); err == nil {
		t.Error("a history that is a string was read")
	}
}
