package audit

import (
	"context"
	"strconv"
	"testing"
)

// The ring keeps the newest entries, and returns them in pages.
func TestTheRingIsBounded(t *testing.T) {
	var ring Ring
	ctx := context.Background()
	const more = 7
	for i := range maxEntries + more {
		if err := ring.Append(ctx, Entry{Subject: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	next := maxEntries + more
	for before := ""; ; {
		page, err := ring.read(ctx, before, 999)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if next--; e.Subject != strconv.Itoa(next) || !IsID(e.ID) {
				t.Fatalf("the entry %q of subject %s comes in place of %d", e.ID, e.Subject, next)
			}
			before = e.ID
		}
	}
	if next != more {
		t.Errorf("the oldest entry is %d, want %d", next, more)
	}
}

// A clock that steps back does not mix up the order.
func TestIDsOfTheRingIncrease(t *testing.T) {
	ring := Ring{last: position{1 << 50, 3}}
	for range 2 {
		if err := ring.Append(context.Background(), Entry{}); err != nil {
			t.Fatal(err)
		}
	}
	if want := (position{1 << 50, 5}); ring.last != want {
		t.Errorf("the last ID is %v, want %v", ring.last, want)
	}
}
