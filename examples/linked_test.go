package examples_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const library = "github.com/accesslimit/accesslimit/"

// operatorsOwn are the symbols that only operators need: those of core/operate, Explain, and what
// reads the lists of Top and the audit.
var operatorsOwn = regexp.MustCompile(library + `core(` +
	`/operate\.|[./].*\b(Explain|Inspect|explanation)|/internal/(toplist|audit)\..*\b[Rr]ead)`)

// A service that only attaches rules is not linked with what operators ask.
func TestServicesLinkNothingOfOperators(t *testing.T) {
	service := filepath.Join(t.TempDir(), "service")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", service, "./testdata/service").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	symbols, err := exec.Command("go", "tool", "nm", service).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(symbols)) {
		if operatorsOwn.MatchString(line) {
			t.Errorf("the service has %s", line)
		}
	}
	for _, known := range []string{"core.(*Guard).Check", "core.(*call).decide", "core/internal/toplist.(*Table).Flush", "core/internal/audit.(*Ring).Append"} {
		if !strings.Contains(string(symbols), library+known) {
			t.Errorf("the service has no %s: the test shows nothing", known)
		}
	}
}
