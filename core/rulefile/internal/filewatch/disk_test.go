package filewatch

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/bounded"
)

// disk is a folder with files, which a Watcher watches.
type disk struct {
	t       *testing.T
	dir     string
	changed chan string
	watcher *Watcher
}

// newDisk returns a new folder, without links in its path.
func newDisk(t *testing.T) *disk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &disk{t: t, dir: dir, changed: make(chan string, 100)}
}

// watch watches paths. Its digest is what the files hold, in order: those of folders too.
func (d *disk) watch(c Config, paths ...string) {
	d.t.Helper()
	for i := range paths {
		c.Paths = append(c.Paths, d.path(paths[i]))
	}
	c.Look = func() (files []string, digest string) { return look(c.Paths) }
	var used atomic.Value
	_, now := c.Look()
	used.Store(now)
	c.Used = func() string { return used.Load().(string) }
	if c.Poll == 0 {
		c.Poll = time.Hour
	}
	c.Quiet = 10 * time.Millisecond
	c.Changed = func(digest string) {
		used.Store(digest)
		d.changed <- digest
	}
	d.watcher = Start(c)
	bounded.Cleanup(d.t, d.watcher.Close)
}

func look(paths []string) (files []string, digest string) {
	for _, path := range paths {
		if entries, err := os.ReadDir(path); err == nil {
			for _, entry := range entries {
				if strings.HasSuffix(entry.Name(), ".yaml") {
					files = append(files, filepath.Join(path, entry.Name()))
				}
			}
			continue
		}
		files = append(files, path)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			text = []byte("none")
		}
		digest += string(text) + " "
	}
	return files, strings.TrimSpace(digest)
}

// want waits until the files were reported with this content.
func (d *disk) want(digest string) {
	d.t.Helper()
	for {
		select {
		case got := <-d.changed:
			if got == digest {
				return
			}
		case <-time.After(time.Minute):
			d.t.Fatalf("%q was never seen", digest)
		}
	}
}

func (d *disk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *disk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) write(name, text string) {
	d.t.Helper()
	d.must(os.MkdirAll(filepath.Dir(d.path(name)), 0o700))
	d.must(os.WriteFile(d.path(name), []byte(text), 0o600))
}

func (d *disk) rename(from, to string) { d.t.Helper(); d.must(os.Rename(d.path(from), d.path(to))) }

func (d *disk) remove(name string) { d.t.Helper(); d.must(os.RemoveAll(d.path(name))) }

// link makes a link, or replaces it in one step.
func (d *disk) link(target, name string) {
	d.t.Helper()
	d.must(os.MkdirAll(filepath.Dir(d.path(name)), 0o700))
	d.must(os.Symlink(target, d.path(name)+".new"))
	d.rename(name+".new", name)
}
