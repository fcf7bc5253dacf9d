package browsertest

import (
	"strings"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// An operator finds the caller who hammers a service of three processes, bans it, and lets it in
// again. The calls go to other processes than the one whose page is used.
func TestJourney(t *testing.T) {
	f := startFleet(t, 3, "rules.yaml")
	for _, user := range []string{"alice", "bob", "carol"} {
		f.load("/orders", user, 3*time.Second)
	}
	stop := f.load("/orders", "mallory", 50*time.Millisecond)
	b := newTab(t, f.page(0), "olga")

	b.open("")
	b.follow("Offenders")
	b.reloadUntil("user:mallory")
	b.follow("user:mallory")
	b.wants("orders")
	stop()

	wantStatus(t, "ban", b.send("ban", "rule", "orders", "for", "2h", "note", "hammers us <b>"), 200)
	b.wants("The subject is banned.")
	var got answer
	banned := func() bool { // in every process within a second
		got = f.call(1, "/orders", "mallory")
		return got.status == 429 && strings.Contains(got.body, "Calls are refused for another 2 h")
	}
	if !redistest.WaitUntil(banned, time.Minute) {
		t.Errorf("a banned caller: %+v", got)
	}

	b.follow("Bans")
	b.wants("user:mallory", "hammers us <b>")
	b.follow("user:mallory")
	wantStatus(t, "unban", b.send("unban", "note", "called, and is sorry"), 200)
	b.wants("The ban has ended.")
	wantStatus(t, "reset", b.send("reset", "note", "a fresh start"), 200)
	passes := func() bool {
		got = f.call(2, "/orders", "mallory")
		return got.status == 200
	}
	if !redistest.WaitUntil(passes, time.Minute) {
		t.Errorf("after the ban: %+v", got)
	}

	b.follow("Audit")
	b.wants("ban", "unban", "reset", "olga", "hammers us <b>", "called, and is sorry", "a fresh start")
}

func wantStatus(t testing.TB, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: status %d, want %d", what, got, want)
	}
}
