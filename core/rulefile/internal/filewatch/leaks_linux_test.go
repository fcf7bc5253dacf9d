package filewatch

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Files that are replaced again and again leave nothing behind: neither watches nor descriptors.
func TestNothingIsLeft(t *testing.T) {
	before := len(descriptors(t))
	d := newDisk(t)
	d.write("x/..0/a.yaml", "0")
	d.link("..0", "x/..data")
	d.link("..data/a.yaml", "x/a.yaml")
	d.watch(Config{}, "x")
	for i := range 30 {
		n := fmt.Sprint("n", i)
		d.write("new/.."+n+"/a.yaml", n)
		d.link(".."+n, "new/..data")
		d.link("..data/a.yaml", "new/a.yaml")
		d.rename("x", "old"+n)
		d.rename("new", "x")
		d.want(n)
	}
	// x, the folder around it, and the target's.
	for watches := inotifyWatches(t); watches > 3; watches = inotifyWatches(t) {
		if watches > 10 {
			t.Fatalf("%d watches are left", watches)
		}
		d.write("x/b.yaml", "") // what is followed is compared at the next event
	}
	d.watcher.Close()
	if after := len(descriptors(t)); after != before {
		t.Errorf("%d descriptors, and %d afterwards", before, after)
	}
}

func descriptors(t *testing.T) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// inotifyWatches returns the number of watches of this process.
func inotifyWatches(t *testing.T) (n int) {
	t.Helper()
	for _, entry := range descriptors(t) {
		info, _ := os.ReadFile("/proc/self/fdinfo/" + entry.Name()) // the one of the listing is gone
		n += strings.Count(string(info), "inotify wd:")
	}
	return n
}
