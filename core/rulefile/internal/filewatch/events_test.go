package filewatch

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// diskChanges are the ways in which files change, each of which is an event. Without before, the file of path
// is there.
var diskChanges = map[string]struct {
	path   string
	before func(*disk)
	change func(d *disk, n string)
}{
	"written in place": {"a.yaml", nil, func(d *disk, n string) { d.write("a.yaml", n) }},
	"in two parts": {"a.yaml", nil, func(d *disk, n string) {
		d.write("a.yaml", "half")
		d.want("half")
		d.write("a.yaml", n)
	}},
	"renamed over": {"a.yaml", nil, func(d *disk, n string) {
		d.write(".a.tmp", n)
		d.rename(".a.tmp", "a.yaml")
	}},
	"as vim saves": {"a.yaml", nil, func(d *disk, n string) {
		d.write("4913", "")
		d.remove("4913")
		d.rename("a.yaml", "a.yaml~")
		d.write("a.yaml", n)
		d.remove("a.yaml~")
	}},
	"removed and back": {"a.yaml", nil, func(d *disk, n string) {
		d.remove("a.yaml")
		d.want("none")
		d.write("a.yaml", n)
	}},
	"its folder removed and back": {"x/a.yaml", nil, func(d *disk, n string) {
		d.remove("x")
		d.want("none")
		d.write("x/a.yaml", n)
	}},
	"its folder replaced": {"x/a.yaml", nil, func(d *disk, n string) {
		d.write("y/a.yaml", n)
		d.rename("x", "old"+n)
		d.rename("y", "x")
		d.want(n)
		d.write("x/a.yaml", "again "+n)
		d.want("again " + n)
		d.write("x/a.yaml", n)
	}},
	"its folder away and back": {"x/a.yaml", nil, func(d *disk, n string) {
		d.rename("x", "y")
		d.rename("y", "x")
		d.write("x/a.yaml", n)
	}},
	"folders above it appear one by one": {
		"x/y/z/a.yaml", func(d *disk) {},
		func(d *disk, n string) {
			d.remove("x")
			d.write("x/y/z/a.yaml", n)
		},
	},
	"a file in a folder": {
		"x", func(d *disk) { d.write("x/a.yaml", "0") },
		func(d *disk, n string) { d.write("x/a.yaml", n) },
	},
	"another file in a folder": {
		"x", func(d *disk) { d.write("x/a.yaml", "") },
		func(d *disk, n string) {
			d.remove("x/b.yaml")
			d.write("x/c.yaml", n)
			d.want(n)
			d.remove("x/c.yaml")
			d.want("")
			d.write("x/b.yaml", n)
		},
	},
	"a folder replaced": {
		"x", func(d *disk) { d.write("x/a.yaml", "0") },
		func(d *disk, n string) {
			d.write("y/b.yaml", n)
			d.remove("x")
			d.want("none")
			d.rename("y", "x")
		},
	},
	"a link to another file": {
		"a.yaml", func(d *disk) { d.write("f/0", "0"); d.link("f/0", "a.yaml") },
		func(d *disk, n string) { d.write("f/"+n, n); d.link("f/"+n, "a.yaml") },
	},
	"the target of a link": {
		"a.yaml", func(d *disk) { d.write("f/0", "0"); d.link(d.path("f/0"), "a.yaml") },
		func(d *disk, n string) { d.write("f/0", n) },
	},
	"the target of a link in a folder": {
		"x", func(d *disk) { d.write("f/0", "0"); d.link("../f/0", "x/a.yaml") },
		func(d *disk, n string) { d.write("f/0", n) },
	},
	"a folder in the middle is a link": {
		"x/now/a.yaml", func(d *disk) { d.write("x/0/a.yaml", "0"); d.link("0", "x/now") },
		func(d *disk, n string) { d.write("x/"+n+"/a.yaml", n); d.link(n, "x/now") },
	},
	"a ConfigMap": {
		"x", func(d *disk) {
			d.write("x/..0/a.yaml", "0")
			d.link("..0", "x/..data")
			d.link("..data/a.yaml", "x/a.yaml")
		},
		func(d *disk, n string) {
			d.write("x/.."+n+"/a.yaml", n)
			d.link(".."+n, "x/..data")
			d.want(n)
			d.write("x/.."+n+"/a.yaml", "again "+n) // what is followed now is the new folder
			d.want("again " + n)
			d.write("x/.."+n+"/a.yaml", n)
		},
	},
	"a link to itself": {
		"a.yaml", func(d *disk) { d.link("a.yaml", "a.yaml") },
		func(d *disk, n string) {
			d.write("b.yaml", n)
			d.rename("b.yaml", "a.yaml")
			d.want(n)
			d.link("a.yaml", "a.yaml")
			d.want("none")
			d.remove("a.yaml")
			d.write("a.yaml", n)
		},
	},
}

// Every way to change a file has an event, so that nothing waits for the poll, which is an hour
// away here. Each case goes through it several times, because what is followed changes with it.
func TestEvents(t *testing.T) {
	for name, test := range diskChanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDisk(t)
			if test.before == nil {
				d.write(test.path, "0")
			} else {
				test.before(d)
			}
			d.watch(Config{Degraded: func(err error) { t.Error(err) }}, test.path)
			for _, n := range []string{"1", "2", "3"} {
				test.change(d, n)
				d.want(n)
			}
		})
	}
}

// A file that is changed through another link has no event in its own folder.
func TestWithoutEvents(t *testing.T) {
	d := newDisk(t)
	d.write("x/a.yaml", "0")
	d.must(os.Mkdir(d.path("y"), 0o700))
	d.must(os.Link(d.path("x/a.yaml"), d.path("y/a.yaml")))
	d.watch(Config{Poll: time.Millisecond}, "x")
	for _, n := range []string{"1", "2", "3"} {
		d.write("y/a.yaml", n)
		d.want(n)
	}
}

// stubborn is a source whose Add waits until somebody reads an error, as fsnotify's can.
type stubborn struct {
	source
	errors chan error
}

func (s stubborn) Add(folder string) error {
	s.errors <- errors.New("events were lost")
	return s.source.Add(folder)
}

func (s stubborn) channels() (<-chan fsnotify.Event, <-chan error) {
	events, _ := s.source.channels()
	return events, s.errors
}

func (s stubborn) Close() error {
	close(s.errors)
	return s.source.Close()
}

func TestAddWaitsForAnError(t *testing.T) {
	d := newDisk(t)
	d.write("a.yaml", "0")
	d.watch(Config{newSource: func() (source, error) {
		s, err := newSource()
		return stubborn{s, make(chan error)}, err
	}}, "a.yaml")
	d.write("a.yaml", "1")
	d.want("1")
}

// A folder that cannot be followed is reported once, and tried again until it can.
func TestAFolderThatCannotBeFollowed(t *testing.T) {
	d := newDisk(t)
	d.write("a.yaml", "0")
	failures, reports := 3, make(chan error, 10)
	d.watch(Config{
		Poll:     time.Millisecond,
		Degraded: func(err error) { reports <- err },
		newSource: func() (source, error) {
			s, err := newSource()
			return refusing{s, &failures}, err
		},
	}, "a.yaml")
	d.write("a.yaml", "1")
	d.want("1")
	d.watcher.Close()
	if len(reports) != 1 || failures != 0 {
		t.Fatalf("%d reports, %d failures left", len(reports), failures)
	}
	if err := <-reports; runtime.GOOS == "linux" && !strings.HasSuffix(err.Error(), "raise the sysctl fs.inotify.max_user_watches") {
		t.Error(err)
	}
}

type refusing struct {
	source
	failures *int
}

func (r refusing) Add(folder string) error {
	if *r.failures > 0 {
		*r.failures--
		return syscall.ENOSPC
	}
	return r.source.Add(folder)
}

// Other files in the folder of a file do not matter.
func TestWhatMatters(t *testing.T) {
	d := newDisk(t)
	d.write("x/a.yaml", "")
	d.write("y/sub/a.yaml", "")
	d.link(d.path("y/sub"), "z")
	spots := findSpots([]string{d.path("x/a.yaml"), d.path("z")})
	for name, want := range map[string]bool{
		"x/a.yaml": true, "x/other": false, "x": true, "y/sub/other": true, "y/sub": true, "y/other": false,
		"z": true, "other": false, "w/other": true,
	} {
		if spots.matter(d.path(name)) != want {
			t.Errorf("%s matters: %v", name, !want)
		}
	}
}
