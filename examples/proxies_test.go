package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
	fmt.Fprintf(&config, "server {\nserver_name service.test;\nlisten %s;\n%s}\n}\n", address, lines)
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
