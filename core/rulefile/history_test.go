package rulefile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
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

// A version that was written is read, by every kind of client. The current one and the 20 before it are kept,
// each once and with its text.
func TestHistory(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{
		"single": redistest.Start(t).Client(t), "cluster": redistest.StartCluster(t).Client(t), "ring": redistest.StartRing(t, 2).Client(t),
		"sentinel": redistest.StartSentinel(t).Client(t),
	} {
		t.Run(name, func(t *testing.T) {
			d := newDocument(t, client)
			now := mustRead(t, d)
			if history := historyOf(t, d); len(history) > 0 || now != (Version{}) || now.String() != "no version" {
				t.Errorf("before the first version: %v, %v", now, history)
			}
			var want []Version
			for i := range 2 + fleetrules.MostKept {
				text := limitText(fmt.Sprint(i/2+1, "/s"))
				wrote, read := publish(t, d, text, now), mustRead(t, d)
				if wrote != read || wrote != (Version{int64(i + 1), "alice", "for the test", read.Time, text}) || !read.Time.After(now.Time) {
					t.Fatalf("wrote %+v, read %+v, after %+v", wrote, read, now)
				}
				now, want = read, append([]Version{read}, want...)
			}
			if history := historyOf(t, d); !slices.Equal(history, want[:1+fleetrules.MostKept]) {
				t.Errorf("the history is %v, want %v", history, want)
			}
			// A rollback, and an author who comes too late. An admin page would carry the version from one request
			// to the next.
			var carried Version
			if err := json.Unmarshal(must(json.Marshal(now)), &carried); err != nil {
				t.Fatal(err)
			}
			publish(t, d, want[3].Text, carried)
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

// Values that this release did not write are errors, and stay as they are.
func TestForeignDocuments(t *testing.T) {
	client := redistest.Start(t).Client(t)
	d := newDocument(t, client)
	publish(t, d, limitText("1/s"), Version{})
	key := d.store.Key()
	good := client.Get(background, key).Val()
	head, _, _ := strings.Cut(good, "\n")
	for value, want := range map[string]string{
		"version: 1\nrules: []\n":               "it was not written by this library",
		strings.Repeat("x", 3<<20):              "it was not written by this library",
		strings.Replace(good, "rd1", "rd2", 1):  "it has the form rd2, of another release, and this release reads rd1",
		head:                                    "it was not written by this library",
		head + "\n":                             "changed by hand",
		good + "#":                              "changed by hand",
		strings.Replace(good, " 1 ", " 01 ", 1): "its first line cannot be read",
		strings.Replace(good, "rd1 1", "rd1 -1", 1):    "its first line cannot be read",
		good + strings.Repeat("#", 2<<20):              "more than",
		signed(good, `{"author":"a","by":"b"}`+"\nx"):  "about its author is not one",
		signed(good, `{"author":"a"}{}`+"\nx"):         "about its author is not one",
		signed(good, `no json`+"\nx"):                  "about its author is not one",
		signed(good, strings.Repeat("x", 5000)+"\nx"):  "no line about its author",
		strings.Replace(good, head, head[:40], 1):      "its first line cannot be read",
		strings.Replace(good, "rd1 1 ", "rd1 1e3 ", 1): "its first line cannot be read",
	} {
		if err := client.Set(background, key, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := d.Read(background)
		if !isForeign(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), key) {
			t.Errorf("%.40q: %v, want %q", value, err, want)
		}
		if strings.HasPrefix(value, head+"\n") { // only its first line is looked at when it is replaced
			continue
		}
		if _, err := d.Write(background, limitText("2/s"), Version{}); !isForeign(err) {
			t.Errorf("%.40q: written over with %v", value, err)
		}
		if client.Get(background, key).Val() != value {
			t.Errorf("%.40q was changed", value)
		}
	}
	if err := becomesHash(client, key); err != nil {
		t.Fatal(err)
	}
	_, read := d.Read(background)
	_, write := d.Write(background, limitText("2/s"), Version{})
	for _, err := range []error{read, write} {
		if !isForeign(err) || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Error(err)
		}
	}
}

// signed returns a value with this body behind the head of another one.
func signed(value, body string) string {
	sum := sha256.Sum256([]byte(body))
	return strings.Join(strings.Split(value, " ")[:3], " ") + " " + hex.EncodeToString(sum[:16]) + "\n" + body
}

func isForeign(err error) bool {
	var failed *core.StoreError
	return errors.As(err, &failed) && failed.Class == core.StoreForeignValue && errors.Is(err, core.ErrStore)
}
