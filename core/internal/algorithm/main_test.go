package algorithm_test

import (
	"cmp"
	"flag"
	"os"
	"testing"

	"github.com/accesslimit/accesslimit/internal/leakcheck"
)

// TestMain chooses the random cases: the same few hundred each time, or fewer by RAPID_CHECKS, so that
// a failure is due to the change at hand. With ACCESSLIMIT_LONG set, there are many more, and others
// each time.
func TestMain(m *testing.M) {
	checks, seed := cmp.Or(os.Getenv("RAPID_CHECKS"), "40"), "1"
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
