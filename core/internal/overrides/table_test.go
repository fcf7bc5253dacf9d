package overrides_test

import (
	"slices"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// A table does the same in Redis and in a process. In a process, the bound is that of all names.
func TestTables(t *testing.T) {
	shared := redisstore.New(redistest.Start(t).Client(t), patient)
	bounded.Cleanup(t, shared.Close)
	memory := memstore.New(100, nil)
	bounded.Cleanup(t, memory.Close)
	for engine, tables := range map[string]overrides.Tables{
		"redis":   {Redis: shared, KeyHead: head, Most: 3},
		"process": {Memory: memory, Most: 3},
	} {
		t.Run(engine, func(t *testing.T) { testTable(t, tables.Of(name)) })
	}
}

func testTable(t *testing.T, table overrides.Table) {
	for _, subject := range []string{"c", "a", "b"} {
		if before, existed, err := table.Set(background, subject, blocked()); before != "" || existed || err != nil {
			t.Fatal(before, existed, err)
		}
	}
	if _, _, err := table.Set(background, "d", blocked()); err != overrides.ErrTooMany {
		t.Errorf("a fourth override: %v", err)
	}
	past := blocked()
	past.Ends = 1
	if _, _, err := table.Set(background, "a", past); err != overrides.ErrEnded {
		t.Errorf("an override that has ended: %v", err)
	}
	page, next, err := table.List(background, "a", 2)
	if err != nil || len(page) != 2 || page[0].Subject != "b" || page[1].Subject != "c" {
		t.Errorf("the list is %+v, then %q, %v", page, next, err)
	}
	text, ok, err := table.Get(background, "a")
	before, existed, wrong := table.Remove(background, "a")
	if !ok || err != nil || text == "" || before != text || !existed || wrong != nil {
		t.Errorf("got %q, %v; removed %q, %t, %v", text, err, before, existed, wrong)
	}
	if _, ok, err := table.Get(background, "a"); ok || err != nil {
		t.Errorf("after Remove: %t, %v", ok, err)
	}
	subjects := []string{}
	page, _, _ = table.List(background, "", 10)
	for _, e := range page {
		subjects = append(subjects, e.Subject)
	}
	if !slices.Equal(subjects, []string{"b", "c"}) {
		t.Errorf("left: %q", subjects)
	}
}
