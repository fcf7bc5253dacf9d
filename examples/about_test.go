package examples_test

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var printedPath = regexp.MustCompile(`(GET|POST) (/\S*)`)

// Every path that an example prints exists.
func TestPrintedPathsExist(t *testing.T) {
	for _, name := range ownWays {
		t.Run(name, func(t *testing.T) {
			s := start(t, name)
			calls := printedPath.FindAllString(s.about, -1)
			if len(calls) < 6 {
				t.Errorf("%d paths in %s", len(calls), s.about)
			}
			for _, call := range calls {
				if got := s.call(call, asAlice); got.status != http.StatusOK {
					t.Errorf("%s: status %d", call, got.status)
				}
			}
		})
	}
}

var shownPlace = regexp.MustCompile(`[\w/.]*\bmain\.go:(\d+)`)

// The page shows where each rule is attached: the line in the module, without the folders of the
// machine.
func TestPlacesOfRules(t *testing.T) {
	source, err := os.ReadFile("quickstart/main.go")
	if err != nil {
		t.Fatal(err)
	}
	lines, seen := strings.Split(string(source), "\n"), make(map[string]bool)
	for _, place := range shownPlace.FindAllStringSubmatch(start(t, "quickstart").page("quickstart").get("rules"), -1) {
		line, _ := strconv.Atoi(place[1])
		if !strings.HasPrefix(place[0], "examples/quickstart/main.go:") || !strings.Contains(lines[line-1], "limiter.MustGuard(") {
			t.Errorf("a rule stands at %s", place[0])
		}
		seen[place[0]] = true
	}
	if len(seen) != 5 {
		t.Errorf("rules stand at %d lines, want 5", len(seen))
	}
}
