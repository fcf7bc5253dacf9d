package examples_test

import (
	"net/http"
	"regexp"
	"testing"
)

var printedPath = regexp.MustCompile(`(GET|POST) (/\S*)`)

// Every path that the examples print exists.
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
