package memstore_test

import (
	"fmt"
	"testing"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
)

// A page of the list costs what is on it, because calls wait for whoever changes overrides, who
// waits for the list. Overrides that were removed, or have ended, are not on it.
func TestAPageOfOverridesIsCheap(t *testing.T) {
	const all = 5000
	store := memstore.New(100, nil)
	put := func(i int, ends int64) error {
		subject := fmt.Sprintf("user:%04d", i)
		o := memstore.NamedOverride{Name: "api", Subject: subject, Override: algorithm.Override{What: algorithm.OverrideBlocked, Ends: ends}}
		_, _, err := store.SetOverride([]byte(subject), o, all)
		return err
	}
	for i := range all {
		ends := int64(0)
		if i%10 == 1 {
			ends = 1 // long ago
		}
		if err := put(i, ends); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < all; i += 10 {
		store.RemoveOverride(fmt.Appendf(nil, "user:%04d", i))
	}
	if got := testing.AllocsPerRun(10, func() { store.Overrides("api", "user:0500", 1) }); got > 1 {
		t.Errorf("a page of one takes %v allocations", got)
	}
	list := func() (subjects []string) {
		for after := ""; ; after = subjects[len(subjects)-1] {
			page := store.Overrides("api", after, 7)
			for _, o := range page {
				subjects = append(subjects, o.Subject)
			}
			if len(page) < 7 {
				return subjects
			}
		}
	}
	listed := list()
	for n, subject := range listed {
		if want := fmt.Sprintf("user:%04d", 10*(n/8)+2+n%8); subject != want {
			t.Fatalf("override %d is that of %s, want %s", n, subject, want)
		}
	}
	for i := range all / 5 { // those that have ended make room
		if err := put(all+i, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(0, 0); err != memstore.ErrTooManyOverrides || len(listed) != all*8/10 || len(list()) != all {
		t.Errorf("%v; %d overrides, then %d", err, len(listed), len(list()))
	}
	if page := store.Overrides("other", "", 1); len(page) > 0 {
		t.Error(page)
	}
}
