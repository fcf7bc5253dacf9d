package rulefile

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/fleetrules"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// All processes of a fleet take up each version, one after the other.
func TestFleet(t *testing.T) {
	client := redistest.Start(t).Client(t)
	d := newDocument(t, client)
	v := publish(t, d, perHour(2), Version{})
	var fleet []*process
	for range 3 {
		fleet = append(fleet, start(t, newDocument(t, client)))
	}
	for limit := 2; limit < 6; limit++ {
		for _, p := range fleet {
			p.await(limit, "")
			if got := p.set.Document(); got != v || p.stats().Version != p.set.Version() || !strings.HasPrefix(p.set.Version(), fmt.Sprintf("%d@20", limit-1)) {
				t.Errorf("the version in force is %+v, %q, and the Stats have %+v; want %+v", got, p.set.Version(), p.stats(), v)
			}
		}
		v = publish(t, d, perHour(limit+1), v)
	}
	place := fleet[0].set.present.Load().rules["api"].place
	if !strings.HasPrefix(place.String(), "document@") || place.Line != 3 {
		t.Errorf("the rule stands at %v", place)
	}
}

// Processes with one text have one digest, whatever its version is and wherever it came from. Stats
// name the document that a process follows, also while its fallback is in force.
func TestDigests(t *testing.T) {
	client := redistest.Start(t).Client(t)
	d, canary := newDocument(t, client), newDocument(t, client)
	canary.store, canary.prefix = fleetrules.NewStore(client, "canary", patient), "canary"
	bounded.Cleanup(t, canary.store.Close)
	fromFile := start(t, d, Files(write(t, "limits.yaml", perHour(2)))).stats()
	fromGo := start(t, d, fallback()).stats()
	first := publish(t, d, perHour(2), Version{})
	publish(t, canary, perHour(2), Version{})
	one, other := start(t, d).stats(), start(t, canary).stats()
	publish(t, d, perHour(2), first)
	again := start(t, d).stats()
	for i, s := range []core.RuleSetStats{fromFile, one, other, again} {
		if s.Digest != one.Digest || s.Digest == "" || s.Document != []string{"accesslimit", "accesslimit", "canary", "accesslimit"}[i] {
			t.Errorf("%d: %+v", i, s)
		}
	}
	if fromGo.Digest == one.Digest || fromGo.Document != "accesslimit" || one.Version == again.Version {
		t.Errorf("%+v, %+v", fromGo, again)
	}
	publish(t, canary, perHour(3), mustRead(t, canary))
	if changed := start(t, canary).stats(); changed.Digest == one.Digest {
		t.Errorf("another text has the digest of %+v", one)
	}
}

// A process that looks at the document reads no more than its first line, unless that has changed.
func TestLooksAreSmall(t *testing.T) {
	server := redistest.Start(t)
	d := newDocument(t, server.Client(t))
	publish(t, d, perHour(2)+"#"+strings.Repeat("x", 1<<19), Version{})
	start(t, d)
	admin := server.Client(t)
	sent := func() (bytes int) {
		info := admin.Info(background, "stats").Val()
		_, after, _ := strings.Cut(info, "total_net_output_bytes:")
		_, _ = fmt.Sscan(after, &bytes)
		return bytes
	}
	before, looks := sent(), server.Calls("getrange")
	await(t, "the document is not looked at", func() bool { return server.Calls("getrange") >= looks+20 })
	if grown := sent() - before; grown > 1<<19 {
		t.Errorf("twenty looks took %d bytes", grown)
	}
}

// Whatever becomes of the document, the last version stays in force until there is a later one that
// is right. The Stats show what is wrong until then, and the log says it once.
func TestBadDocuments(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	d := newDocument(t, client)
	first := publish(t, d, perHour(2), Version{})
	key := d.store.Key()
	old := client.Get(background, key).Val()
	p := start(t, newDocument(t, client))
	second := publish(t, d, perHour(3), first)
	p.await(3, "")
	now := client.Get(background, key).Val()
	third := strings.Replace(now, second.headText(), Version{Number: 3, Time: second.Time.Add(time.Second)}.headText(), 1)
	looks := func() int { return server.Calls("getrange") }
	set := func(value string) func() error {
		return func() error { return client.Set(background, key, value, 0).Err() }
	}
	write := func(text string) func() error {
		return func() error {
			if err := client.Set(background, key, now, 0).Err(); err != nil {
				return err
			}
			_, err := d.Write(background, text, second)
			return err
		}
	}
	for name, bad := range map[string]struct {
		do            func() error
		want, problem string
	}{
		"lost":         {func() error { return client.FlushAll(background).Err() }, "Redis has lost the document", "lost"},
		"older":        {set(old), "Redis has version 1@", "lost"},
		"garbage":      {set("garbage"), "it was not written by this library", "wrong"},
		"of a release": {set("rd2" + now[3:]), "it has the form rd2, of another release", "wrong"},
		"cut off":      {set(third[:len(third)-1]), "changed by hand", "wrong"},
		"a hash":       {func() error { return becomesHash(client, key) }, "WRONGTYPE", "wrong"},
		"new field":    {set(signed(third, "{\"author\":\"a\",\"note\":\"b\"}\n"+perHour(5)+"    colour: red\n")), `document@3:5:5: rule "api": unknown field "colour"`, "wrong"},
		"function":     {write(perHour(5) + "    skip: is_new\n"), `"is_new": is not registered in Functions.Skips`, "wrong"},
		"name missing": {write(strings.Replace(perHour(5), "api", "apo", 1)), `rule "api": name: is attached`, "wrong"},
	} {
		p.await(3, "")
		before := p.log.Count("level=ERROR")
		if err := bad.do(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p.await(3, bad.want)
		p.stays(3, looks)
		if strings.Contains(p.stats().LastError, "did not answer") {
			t.Errorf("%s: Redis did answer: %s", name, p.stats().LastError)
		}
		if v := p.set.Document(); v.Number != 2 || p.stats().Version != p.set.Version() || p.stats().Problem != bad.problem {
			t.Errorf("%s: the version in force is %v, and the Stats have %+v", name, v, p.stats())
		}
		if n := p.log.Count("level=ERROR") - before; n != 1 {
			t.Errorf("%s: logged %d times: %s", name, n, p.log.String())
		}
		if err := set(now)(); err != nil {
			t.Fatal(err)
		}
	}
}

// headText returns the beginning of the version as it stands in Redis.
func (v Version) headText() string { return fmt.Sprintf("rd1 %d %d ", v.Number, v.Time.UnixMicro()) }

// becomesHash replaces a value by one of another type, in one step.
func becomesHash(client *redis.Client, key string) error {
	_, err := client.TxPipelined(background, func(pipe redis.Pipeliner) error {
		return errors.Join(pipe.Del(background, key).Err(), pipe.HSet(background, key, "text", "x").Err())
	})
	return err
}

// Reload looks at the document at once, and tries a version again that was wrong.
func TestReloadOfADocument(t *testing.T) {
	d := newDocument(t, redistest.Start(t).Client(t))
	d.period = time.Hour
	v := publish(t, d, perHour(2), Version{})
	p := start(t, d)
	v = publish(t, d, perHour(3), v)
	if err := p.set.Reload(); err != nil || p.policy() != 3 {
		t.Errorf("%v, and calls are decided by %d/h", err, p.policy())
	}
	publish(t, d, perHour(4)+"    skip: is_new\n", v)
	for range 2 {
		var wrong *Error
		if err := p.set.Reload(); !errors.As(err, &wrong) || p.policy() != 3 {
			t.Errorf("%v, and calls are decided by %d/h", err, p.policy())
		}
	}
}

// A document that is damaged behind its first line, which stays the same, is found by Reload, with
// the error of Read. A process that starts uses its fallback then.
func TestReloadOfADamagedDocument(t *testing.T) {
	client := redistest.Start(t).Client(t)
	d := newDocument(t, client)
	publish(t, d, perHour(2), Version{})
	p := start(t, newDocument(t, client))
	whole := client.Get(background, d.store.Key()).Val()
	if err := client.Set(background, d.store.Key(), strings.Replace(whole, "2/h", "9/h", 1), 0).Err(); err != nil {
		t.Fatal(err)
	}
	_, want := d.Read(background)
	if err := p.set.Reload(); !isForeign(want) || err == nil || err.Error() != want.Error() || p.policy() != 2 {
		t.Errorf("Reload: %v, and calls are decided by %d/h; Read: %v", err, p.policy(), want)
	}
	p.await(2, "its checksum is wrong")
	if later := start(t, newDocument(t, client), fallback()); later.stats().Problem != "wrong" || p.stats().Problem != "wrong" {
		t.Errorf("the problems are %q and %q", p.stats().Problem, later.stats().Problem)
	}
	if err := client.Set(background, d.store.Key(), whole, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := p.set.Reload(); err != nil || p.stats().Problem != "" {
		t.Errorf("after it was restored: %v, and the problem is %q", err, p.stats().Problem)
	}
}

// The audit has one entry for each version, however many processes follow it, and however often its
// author repeats the call.
func TestAuditOfADocument(t *testing.T) {
	client := redistest.Start(t).Client(t)
	d := newDocument(t, client)
	first := publish(t, d, perHour(2), Version{})
	limiter := must(core.New(core.Options{Redis: client, Timeout: patient, Logger: slog.New(slog.DiscardHandler)}))
	defer limiter.Close()
	var fleet []*Set
	for range 2 {
		set := must(Follow(limiter, registered, newDocument(t, client)))
		defer set.Close()
		fleet = append(fleet, set)
	}
	second := publish(t, d, perHour(3), first)
	for _, set := range fleet {
		await(t, "the version is not in force", func() bool { return set.Document() == second })
	}
	publish(t, d, perHour(3), first)
	limiter.Close() // waits for what is being written
	reader := must(core.New(core.Options{Redis: client, Timeout: patient, Logger: slog.New(slog.DiscardHandler)}))
	defer reader.Close()
	entries := must(operate.New(reader).Audit(background, "", 10))
	if len(entries) != 2 {
		t.Fatalf("the audit has %+v", entries)
	}
	for i, want := range []operate.AuditEntry{
		{Before: first.id(), After: second.id()},
		{After: first.id()},
	} {
		want.ID, want.Time, want.Act, want.Author, want.Note = entries[i].ID, entries[i].Time, "rules", "alice", "for the test"
		if entries[i] != want {
			t.Errorf("the audit has %+v, want %+v", entries[i], want)
		}
	}
}

// id returns how Stats and the audit name a version.
func (v Version) id() string { return v.head().String() }

// Whatever has happened to the document before, a version that is published is in force in all
// processes soon, and nothing that Redis shows in between takes its place.
func TestAPublishedVersionWins(t *testing.T) {
	client := redistest.Start(t).Client(t)
	d := newDocument(t, client)
	key := d.store.Key()
	var past []string
	fleet := []*process{start(t, newDocument(t, client), fallback()), start(t, newDocument(t, client), fallback())}
	last := Version{}
	for i := range rounds(20, 2000) {
		limit := 2 + i%1000
		for range rand.N(3) {
			err := error(nil)
			switch n := rand.N(4); {
			case n == 0:
				err = client.Del(background, key).Err()
			case n == 1:
				err = client.Set(background, key, "garbage", 0).Err()
			case n == 2:
				err = becomesHash(client, key)
			case len(past) > 0:
				err = client.Set(background, key, past[rand.N(len(past))], 0).Err()
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(2 * d.period)) // they may look at it, or not
			for _, p := range fleet {
				if got := p.set.Document(); got.head().Number != 0 && got != last {
					t.Fatalf("%v is in force, want %v", got, last)
				}
			}
		}
		now, err := d.Read(background)
		if isForeign(err) {
			err = client.Del(background, key).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
		last = publish(t, d, perHour(limit), now)
		past = append(past, client.Get(background, key).Val())
		for _, p := range fleet {
			await(t, fmt.Sprintf("%v is not in force, after %v", last, now), func() bool { return p.set.Document() == last })
			p.await(limit, "")
		}
	}
}
