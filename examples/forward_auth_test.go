package examples_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// asksOf are the lines of PROXIES.md by which a proxy asks, by how they begin.
var asksOf = map[string]string{"nginx": "location / {\n  auth_request", "caddy": "route {"}

// sites runs a test behind each proxy.
func sites(t *testing.T, test func(t *testing.T, name string, s *site)) {
	for name, start := range asksOf {
		t.Run(name, func(t *testing.T) { test(t, name, newSite(t, name, fenced(t, "PROXIES.md", start))) })
	}
}

// get returns a request with further lines of its header.
func get(target string, lines ...string) string {
	return "GET " + target + " HTTP/1.1\r\n" + strings.Join(append(lines, "\r\n"), "\r\n")
}

const hostA = "Host: a.test"

// With the configurations on the page, callers get the status and the headers of the limits, and the
// service gets the calls that may go on, with their bodies.
func TestProxiesAsk(t *testing.T) {
	sites(t, func(t *testing.T, _ string, s *site) {
		const post = "POST /limited/a?b HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello"
		for i, want := range []struct {
			request, served, policy string
			status                  int
			waits                   bool
		}{
			{post, "POST /limited/a?b hello", `"limited";q=2`, 200, false},
			{post, "POST /limited/a?b hello", `"limited";q=2`, 200, false},
			{post, "", `"limited";q=2`, 429, true},
			{get("/limited/a", hostA), "GET /limited/a ", `"all";q=1000`, 200, false},
			{get("/private/a", hostA), "", "", 401, false},
			{get("/private/a", hostA, "Authorization: Bearer broken"), "", "", 503, true},
		} {
			status, header := s.send(want.request)
			left, policy := header.Get("Ratelimit"), header.Get("Ratelimit-Policy")
			if status != want.status || (left == "") != (want.policy == "") || !strings.HasPrefix(policy, want.policy) || (header.Get("Retry-After") != "") != want.waits {
				t.Errorf("call %d: %d, %v, want %+v", i, status, header, want)
			}
			if login := header.Get("Www-Authenticate"); (login != "") != (status == 401) {
				t.Errorf("call %d: %d with WWW-Authenticate %q", i, status, login)
			}
			if served := taken(s.served); served != want.served {
				t.Errorf("call %d: the service got %q, want %q", i, served, want.served)
			}
		}
	})
}

// The limiter knows the call as the service gets it, whatever its caller writes.
func TestProxiesAskAboutHostileCalls(t *testing.T) {
	long, huge := "/"+strings.Repeat("a", 6000), "/"+strings.Repeat("a", 40_000)
	sites(t, func(t *testing.T, name string, s *site) {
		for _, test := range []struct{ request, nginx, caddy string }{
			{get("/a%2Fb?c", hostA), "200 GET a.test /a%2Fb", ""},
			{get("//b.test//a", "Host: A.test:80"), "200 GET a.test //b.test//a", ""},
			{get("http://b.test/a", hostA), "200 GET b.test /a", ""},
			{get("http://b.test", hostA), "200 GET b.test /", ""},
			{get("/a%0d%0aX-Forwarded-Host:%20b.test", hostA), "200 GET a.test /a%0d%0aX-Forwarded-Host:%20b.test", ""},
			{get("/a#b", hostA), "403", "200 GET a.test /a#b"}, // Caddy sends /a%23b
			{get("/%zz", hostA), "400", ""},
			{get("/a", "Host: a.test, b.test"), "400", ""},
			{get("/a", hostA, "X-Forwarded-Method: POST", "X-Forwarded-Uri: /b", "X-Forwarded-Host: b.test", "X-Forwarded-For: 192.0.2.1"), "200 GET a.test /a", ""},
			{get("/a", hostA, "X-Forwarded-Uri: /b", "X-Forwarded-Uri: /c", "X-Forwarded-Host: ", "X-Forwarded-For: x"), "200 GET a.test /a", ""},
			{get("/a", hostA, "Connection: X-Forwarded-Method, X-Forwarded-Uri, X-Forwarded-Host, X-Forwarded-For"), "200 GET a.test /a", ""},
			{get("/limit", hostA, "X-Forwarded-Uri: /b"), "404", "200 GET a.test /limit"}, // nginx asks there
			{get(long, hostA), "200 GET a.test " + long, ""},
			{get(huge, hostA), "414", "200 GET a.test " + huge},
			{"GET /a HTTP/1.0\r\n\r\n", "200 GET  /a", ""},
			{"GET /a HTTP/1.0\r\nX-Forwarded-Host: b.test\r\n\r\n", "200 GET  /a", ""},
			{"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", "400", "200"}, // Caddy answers by itself
			{"PURGE /a HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "200 PURGE a.test /a", ""},
			{"G@T /a HTTP/1.1\r\nHost: a.test\r\n\r\n", "400", ""},
		} {
			want := test.nginx
			if name == "caddy" && test.caddy != "" {
				want = test.caddy
			}
			status, _ := s.send(test.request)
			asked, served := taken(s.asked), taken(s.served)
			if got := strings.TrimSpace(fmt.Sprint(status, " ", asked)); got != want || (served == "") != (asked == "") {
				t.Errorf("%.80q: %.80q, want %.80q; the service got %.80q", test.request, got, want, served)
			}
		}
	})
}

// Refusals of the service itself are not taken for those of the limiter.
func TestProxiesPassOnRefusals(t *testing.T) {
	sites(t, func(t *testing.T, _ string, s *site) {
		for _, want := range []int{401, 403, 429, 503} {
			status, header := s.send(get(fmt.Sprint("/a?status=", want), hostA))
			if status != want || header.Get("Retry-After") != "7" || header.Get("Ratelimit") == "" {
				t.Errorf("%d: %d, %v", want, status, header)
			}
		}
	})
}

// While the limiter is away, no call passes.
func TestProxiesAskInVain(t *testing.T) {
	sites(t, func(t *testing.T, name string, s *site) {
		_ = s.auth.Close()
		want := map[string]int{"nginx": http.StatusInternalServerError, "caddy": http.StatusBadGateway}[name]
		if status, _ := s.send(get("/a", hostA)); status != want || taken(s.served) != "" {
			t.Errorf("status %d, want %d", status, want)
		}
	})
}

// Caddy's own directive does the same, but that only refusals have the headers.
func TestForwardAuthOfCaddy(t *testing.T) {
	s := newSite(t, "caddy", fenced(t, "PROXIES.md", "forward_auth"))
	for _, want := range []int{200, 200, 429} {
		status, header := s.send("POST /limited/a HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n")
		if refused := header.Get("Ratelimit") != "" && header.Get("Retry-After") != ""; status != want || refused != (want == 429) {
			t.Errorf("%d, %v, want %d", status, header, want)
		}
	}
}

// asking are the proxies, and how to run one with its lines of the page.
var asking = map[string]func(t *testing.T, dir, lines, address, service, auth string) *exec.Cmd{"nginx": nginx, "caddy": caddy}

// nginx returns the command of an nginx with these lines in its server. It keeps its files in a folder.
func nginx(t *testing.T, dir, lines, address, service, auth string) *exec.Cmd {
	var config strings.Builder
	fmt.Fprintf(&config, "daemon off;\nmaster_process off;\npid %s/pid;\nevents {}\nhttp {\naccess_log off;\n", dir)
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&config, "%s_temp_path %s/%s;\n", name, dir, name)
	}
	lines = strings.NewReplacer("10.0.0.11:8080", service, "10.0.0.21:8080/", "unix:"+auth+":/").Replace(lines)
	fmt.Fprintf(&config, "server {\nlisten %s;\n%s}\n}\n", address, lines)
	return exec.Command(installed(t, "nginx"), "-p", dir, "-e", "stderr", "-c", written(t, dir, config.String()))
}

// caddy returns the command of a Caddy with these lines in its site.
func caddy(t *testing.T, dir, lines, address, service, auth string) *exec.Cmd {
	lines = strings.NewReplacer("10.0.0.11:8080", service, "10.0.0.21:8080", "unix/"+auth).Replace(lines)
	config := fmt.Sprintf("{\nadmin off\n}\nhttp://:%s {\nbind 127.0.0.1\n%s}\n", address[strings.LastIndex(address, ":")+1:], lines)
	run := exec.Command(installed(t, "caddy"), "run", "--adapter", "caddyfile", "--config", written(t, dir, config))
	run.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	return run
}

// installed returns the path of a proxy.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: make proxies installs it", name)
	}
	return path
}

func written(t *testing.T, dir, config string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// fenced returns the block of a page that begins with a text.
func fenced(t *testing.T, page, start string) string {
	t.Helper()
	block := regexp.MustCompile("(?s)\n```\n(" + regexp.QuoteMeta(start) + ".*?)```\n").FindStringSubmatch(text(t, page))
	if block == nil {
		t.Fatalf("%s has no block that begins with %q", page, start)
	}
	return block[1]
}
