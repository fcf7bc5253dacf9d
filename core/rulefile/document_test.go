package rulefile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/fleetrules"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

var background = context.Background()

// patient is a timeout that is not the subject of a test, and passes on a busy machine.
const patient = time.Minute

// limitText returns a text with one rule, api, with this limit.
func limitText(limit string) string {
	return "version: 1\nrules:\n  - name: api\n    limit: " + limit + "\n"
}

// newDocument returns the document of the default prefix, which is looked at every few
// milliseconds.
func newDocument(t testing.TB, client redis.UniversalClient) *Document {
	t.Helper()
	if _, err := NewDocument(client, ""); err != nil {
		t.Fatal(err)
	}
	d := &Document{store: fleetrules.NewStore(client, "accesslimit", patient), prefix: "accesslimit", period: 4 * time.Millisecond}
	bounded.Cleanup(t, d.store.Close)
	return d
}

// publish writes a text as the version after another one.
func publish(t testing.TB, d *Document, text string, after Version) Version {
	t.Helper()
	v, err := d.Write(operate.WithActor(background, "alice", "for the test"), text, after)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustRead(t testing.TB, d *Document) Version {
	t.Helper()
	v, err := d.Read(background)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Of authors who read the same version, exactly one publishes. The others learn who it was.
func TestTwoAuthors(t *testing.T) {
	d := newDocument(t, redistest.Start(t).Client(t))
	for read := (Version{}); read.Number < 5; {
		var all sync.WaitGroup
		var mu sync.Mutex
		var won []Version
		var lost []error
		for i := range 8 {
			all.Go(func() {
				v, err := d.Write(operate.WithActor(background, fmt.Sprint("author ", i), ""), limitText("1/s"), read)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					lost = append(lost, err)
				} else {
					won = append(won, v)
				}
			})
		}
		all.Wait()
		if len(won) != 1 || len(lost) != 7 {
			t.Fatalf("%d of 8 authors have published", len(won))
		}
		for _, err := range lost {
			var conflict *ConflictError
			if !errors.As(err, &conflict) {
				t.Fatal(err)
			}
			found := won[0]
			found.Text = ""
			if conflict.Found != found || conflict.Read.Number != read.Number ||
				!strings.Contains(err.Error(), fmt.Sprintf("version %d (%s, ", found.Number, found.Author)) {
				t.Errorf("%v, want it to name %v", err, found)
			}
		}
		read = mustRead(t, d)
	}
}

// An author whose reply was lost repeats the call: the text is not written twice. Somebody else's
// version is no such repetition, and nor is a version of another history of the same number.
func TestWriteAgain(t *testing.T) {
	client := redistest.Start(t).Client(t)
	d := newDocument(t, client)
	first := publish(t, d, limitText("1/s"), Version{})
	second := publish(t, d, limitText("2/s"), first)
	if again := publish(t, d, limitText("2/s"), first); again != second {
		t.Errorf("the second time %+v, want %+v", again, second)
	}
	var conflict *ConflictError
	if _, err := d.Write(background, limitText("2/s"), first); !errors.As(err, &conflict) {
		t.Errorf("by somebody else: %v", err)
	}
	other := second
	other.Time = other.Time.Add(-time.Second)
	if _, err := d.Write(background, limitText("3/s"), other); !errors.As(err, &conflict) {
		t.Errorf("after a version that was lost: %v", err)
	}
	if err := client.FlushAll(background).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(background, limitText("3/s"), second); !errors.As(err, &conflict) || conflict.Found != (Version{}) {
		t.Errorf("after the document was lost: %v", err)
	}
}

// A document that Load would refuse cannot be published, as far as that can be known without the
// functions of a service.
func TestWriteChecks(t *testing.T) {
	d := newDocument(t, redistest.Start(t).Client(t))
	for text, want := range map[string]string{
		"":                                            "document:1:1: is empty",
		limitText("0/s"):                              `document:4:12: rule "api": limit = "0/s"`,
		limitText("1/s\n    burst: 3"):                `document:5:5: rule "api": unknown field "burst"`,
		"version: 2\nrules: []\n":                     "document:1:10: version",
		"version: 1\nrules:\n  - limit: [":            "document:3:1: ",
		limitText("1/s\n    key: header:a b"):         "must name a header",
		`{"version": 1, "rules": ]}`:                  "document:1:",
		limitText("1/s") + strings.Repeat("#", 1<<20): "document: has 1048623 bytes, want at most 1048576",
		"\ufeff" + limitText("1/s"):                   "byte order mark",
		limitText("1/s\n    lease: 10\n    plan: a"):  "plan",
	} {
		_, err := d.Write(background, text, Version{})
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	if v := mustRead(t, d); v.Number != 0 {
		t.Errorf("%v was published", v)
	}
	var last Version
	for _, text := range []string{
		limitText("1/s\n    key: [tenant, ip]\n    skip: is_probe\n    cost: by_size\n    need_login: true"),
		limitText("1/s\n    plan: plan_of\n    plans: {free: 2/s}\n    skip: {function: is_probe}"),
		limitText("5/m log\n    note: amount\n    count: failed"),
		limitText("5/m\n    limit_for: contract"),
		"\n{\"version\":\t1, \"rules\": [{\"name\": \"api\", \"limit\": \"1\\/s\"}]}",
		limitText("1/s") + "#" + strings.Repeat("x", 1<<20-len(limitText("1/s"))-1),
	} {
		last = publish(t, d, text, last)
		if mustRead(t, d).Text != text {
			t.Errorf("%.60q is not read as it was written", text)
		}
	}
}

// An error about a missing right names the key, because a document may have a prefix of its own.
func TestDocumentWithoutRights(t *testing.T) {
	server := redistest.Start(t)
	if err := server.Client(t).Do(background, "ACL", "SETUSER", "limits", "on", ">p", "~accesslimit:*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	d, err := NewDocument(server.Client(t, func(o *redis.Options) { o.Username, o.Password = "limits", "p" }), "rules")
	if err != nil {
		t.Fatal(err)
	}
	bounded.Cleanup(t, d.store.Close)
	_, readErr := d.Read(background)
	_, writeErr := d.Write(background, limitText("1/h"), Version{})
	for right, err := range map[string]error{"+getrange": readErr, "+set +time": writeErr} {
		if want := right + " for the key " + d.store.Key(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// The time that a document waits for Redis can be chosen.
func TestTimeoutOfADocument(t *testing.T) {
	server := redistest.Start(t)
	d := must(NewDocument(server.Client(t), "canary"))
	server.Stop()
	for _, read := range []func(hurried *Document) error{
		func(hurried *Document) error { _, err := hurried.Read(background); return err },
		func(hurried *Document) error { _, err := hurried.History(background); return err },
		func(hurried *Document) error {
			_, err := hurried.Write(background, limitText("1/s"), Version{})
			return err
		},
	} {
		// Each has a client of its own: a server that does not answer one for long is not asked again by it.
		hurried := must(must(NewDocument(server.Client(t), "canary")).WithTimeout(50 * time.Millisecond))
		var failed *core.StoreError
		if err := read(hurried); !errors.As(err, &failed) || !strings.Contains(err.Error(), "within 50ms") || hurried.prefix != "canary" {
			t.Errorf("the document %q: %v", hurried.prefix, err)
		}
	}
	for _, wrong := range []time.Duration{-1, 0, time.Millisecond - 1, time.Minute + 1} {
		var refused *core.RuleError
		if _, err := d.WithTimeout(wrong); !errors.As(err, &refused) || refused.Field != "timeout" {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}
