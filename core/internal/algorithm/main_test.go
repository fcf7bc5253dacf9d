package algorithm_test

import (
	"flag"
	"os"
	"testing"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

// TestMain settles how much is drawn: the same few hundred cases each time, so that a run fails or
// passes for a reason that is in the change at hand; with ACCESSLIMIT_LONG set, many more and
// others each time.
func TestMain(m *testing.M) {
	checks, seed := "40", "1"
	if os.Getenv("ACCESSLIMIT_LONG") != "" {
		checks, seed = "3000", "0"
	}
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.seed": seed, "rapid.nofailfile": "true", "rapid.shrinktime": "10s"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	leakcheck.Main(m)
}
