package rulefile

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/rulefile/internal/filewatch"
	"github.com/accesslimit/accesslimit/internal/bounded"
	"github.com/accesslimit/accesslimit/internal/limitertest"
	"github.com/accesslimit/accesslimit/internal/logtest"
	"github.com/accesslimit/accesslimit/nethttplimit"
)

// badInput is what can stand where a rules file should: how it gets there, and what the error says
// about it.
var badInput = []struct {
	name string
	put  func(path string) error
	want string
}{
	{"a limit of zero", ruleWith("limit: 0/h"), `:3:24: rule "api": limit = "0/h"`},
	{"a pattern that would take years", ruleWith(`limit: 9/h, paths: ["/` + strings.Repeat("{a,a}", 40) + `"]`), `:3:37: rule "api": paths = "/{a,a}`},
	{"a path with a query", ruleWith(`limit: 9/h, paths: ["/search?q=*"]`), `:3:37: rule "api": paths = "/search?q=*": has a query`},
	{"a path with a space", ruleWith(`limit: 9/h, except: ["/a b"]`), `:3:38: rule "api": except = "/a b": has a space`},
	{"a path with a host", ruleWith(`limit: 9/h, skip: {paths: ["//a.test/x"]}`), `:3:44: rule "api": `},
	{"a method that is none", ruleWith(`limit: 9/h, methods: ["GET /x"]`), `:3:39: rule "api": methods = "GET /x": must be one HTTP method`},
	{"all addresses, in halves", ruleWith(`limit: 9/h, skip: {addresses: [0.0.0.0/1, 128.0.0.0/1]}`), `:3:47: rule "api": skip.addresses: are together all of 0.0.0.0/0`},
	{"all addresses, in parts", ruleWith(`limit: 9/h, skip: {addresses: ["8000::/1", "4000::/2", "10.0.0.0/8", "2000::/3", "::/3"]}`), `:3:47: rule "api": skip.addresses: are together all of ::/0`},
	{"an attached name is missing", contents(oneRule("apo")), `:3:5: rule "api": name: is attached (`},
	{"an empty file", contents(""), ":1:1: is empty: it must have rules"},
	{"a byte order mark", contents("\ufeff" + oneRule("api")), ":1:1: begins with a byte order mark"},
	{"CRLF", contents(strings.ReplaceAll(oneRule("api"), "\n", "\r\n")), ":1:11: has a carriage return"},
	{"UTF-16", contents("\xff\xfev\x00e\x00r\x00"), ":1:1: is not UTF-8 (it looks like UTF-16"},
	{"an alias bomb", contents(aliasBomb()), ":1:4: anchors (&name) are not read"},
	{"100 MB", func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 100<<20))
	}, ": has 104857600 bytes, want at most 1048576"},
	{"a folder", func(path string) error { return os.Mkdir(path, 0o700) }, ": the folder has no file *.yaml"},
	{"a folder of a folder", func(path string) error { return os.MkdirAll(filepath.Join(path, "a.yaml"), 0o700) }, "/a.yaml: is a folder, not a file"},
	{"a FIFO", makeFIFO, ": is not a regular file (p"},
	{"a device", func(path string) error { return os.Symlink("/dev/zero", path) }, ": is not a regular file (D"},
	{"a file of the kernel that waits for events", linkTo("/proc/kmsg"), ":1:1: is empty: it must have rules"},
	{"another file", contents("root:secret:/root\nuser:secret:/\n"), ":1:1: is not a rules file: it must be a mapping with version and rules"},
	{"another mapping", contents("secret: secret\n"), ":1:1: is not a rules file: it must be a mapping with version and rules"},
	{"no rights", unreadable, ": cannot be read: "},
	{"nothing", func(string) error { return nil }, ": cannot be read: no such file"},
	{"a link to nothing", func(path string) error { return os.Symlink("gone", path) }, ": cannot be read: no such file"},
}

// contents writes a file.
func contents(text string) func(path string) error {
	return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

// linkTo links to a file, or to an empty one on systems that do not have it.
func linkTo(file string) func(path string) error {
	return func(path string) error {
		if _, err := os.Stat(file); err != nil {
			return os.WriteFile(path, nil, 0o600)
		}
		return os.Symlink(file, path)
	}
}

// ruleWith writes a file with one rule, with the given fields.
func ruleWith(fields string) func(path string) error {
	return contents("version: 1\nrules:\n  - {name: api, " + fields + "}\n")
}

// unreadable makes a file that this process may not read. Root may read everything, except a link
// to itself.
func unreadable(path string) error {
	if os.Geteuid() == 0 {
		return os.Symlink(path, path)
	}
	return os.WriteFile(path, []byte(oneRule("api")), 0)
}

func TestBadInputAtTheStart(t *testing.T) {
	path := write(t, "limits.yaml", "")
	for _, bad := range badInput {
		if strings.Contains(bad.want, "is attached") {
			continue // nothing is, at the start
		}
		put(t, path, bad.put)
		wantError(t, []string{path}, path+bad.want)
	}
}

// Whatever takes the place of a rules file, the old limits stay in force, and the error says what
// is wrong, once.
func TestBadInputLater(t *testing.T) {
	var log logtest.Log
	limiter := limitertest.New(t, core.Options{Logger: log.Logger()})
	path := write(t, "limits.yaml", oneRule("api"))
	put(t, path, ruleWith("limit: 1/h"))
	set := follow(t, limiter, filewatch.Config{Quiet: time.Millisecond, Poll: time.Millisecond}, path)
	s := guarded{nethttplimit.With(set.MustGuard("api"))(http.NotFoundHandler())}
	s.want(t, 404, alice, "/")
	for i, bad := range badInput {
		version := set.Version()
		log.Reset()
		put(t, path, bad.put)
		line := strings.ReplaceAll(path+bad.want, `"`, `\"`)
		await(t, bad.name, func() bool { return strings.HasPrefix(lastError(limiter), path+bad.want) && log.Count(line) > 0 })
		if err := set.Reload(); err == nil || !strings.HasPrefix(err.Error(), path+bad.want) {
			t.Errorf("%s: Reload returns %v", bad.name, err)
		}
		if set.Version() != version {
			t.Errorf("%s: is version %s", bad.name, set.Version())
		}
		s.want(t, 429, alice, "/")
		if n := log.Count(line); n != 1 {
			t.Errorf("%s: logged %d times", bad.name, n)
		}
		put(t, path, ruleWith(fmt.Sprintf("limit: %d/h", i+2)))
		await(t, "a good file", func() bool { return set.Version() != version })
		s.want(t, 404, alice, "/")
		s.want(t, 429, alice, "/")
	}
}

// put replaces what is at a path.
func put(t *testing.T, path string, by func(path string) error) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(path), by(path)); err != nil {
		t.Fatal(err)
	}
}

// A file that grows while it is read is not used.
func TestAFileThatGrows(t *testing.T) {
	path := write(t, "limits.yaml", "")
	file := must(os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0))
	defer file.Close()
	var writer sync.WaitGroup
	stop := make(chan struct{})
	bounded.Cleanup(t, func() {
		close(stop)
		writer.Wait()
	})
	writer.Go(func() {
		for size := maxFileBytes; ; size += 100 {
			select {
			case <-stop:
				return
			default:
			}
			if size >= maxFileBytes {
				size = maxFileBytes / 2
				_ = os.Truncate(path, int64(size))
			}
			_, _ = file.Write(make([]byte, 100))
		}
	})
	await(t, "an error", func() bool {
		data, err := readFile(path)
		return data == nil && err != nil && strings.HasPrefix(err.Error(), "changed while it was read")
	})
}

// A file that cannot be read is another problem than one that is wrong: nobody knows what it would
// say. If another file is wrong, that is the problem.
func TestUnreadFiles(t *testing.T) {
	good, other := write(t, "a.yaml", rulesText("api", "limit: 1/h")), write(t, "b.yaml", rulesText("other", "limit: 1/h"))
	set := must(load(t, good, other))
	guard := set.MustGuard("api")
	want := func(problem string) {
		t.Helper()
		err := set.Reload()
		if got := set.limiter.Stats().RuleSets[0]; got.Problem != problem || (err == nil) != (problem == "") {
			t.Errorf("the Stats have %+v, want %q; Reload: %v", got, problem, err)
		}
	}
	replace := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want("")
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	want("unread")
	if err := makeFIFO(other); err != nil {
		t.Fatal(err)
	}
	want("unread")
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	replace(good, rulesText("api", "limit: 0/h"))
	want("wrong")
	replace(good, rulesText("api", "limit: 2/h"))
	want("unread")
	replace(other, rulesText("other", "limit: 1/h"))
	want("")
	runtime.KeepAlive(guard)
}
