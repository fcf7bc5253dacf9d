package examples_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// isLong reports whether the longer proofs are to run, as in "make long".
var isLong = os.Getenv("ACCESSLIMIT_LONG") != ""

// Three processes with 100 workers use what the server allows. After each change of its limit, no more
// calls are refused than the ten that were in flight. For ten minutes, they use 95 % of it.
func TestOutgoing(t *testing.T) {
	c := command("outgoing", "REDIS_URL=redis://"+redistest.Start(t).Addr())
	seconds := 4
	if isLong {
		seconds = 200
	}
	c.Args = append(c.Args, "-seconds", strconv.Itoa(seconds))
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out)
	answered, refused := make(map[int]int), make(map[int]int)
	for _, line := range strings.Split(string(out), "\n") {
		var allowed, yes, no int
		if n, _ := fmt.Sscan(line, &allowed, &yes, &no); n == 3 {
			answered[allowed] += yes
			refused[allowed] += no
		}
	}
	for _, allowed := range []int{100, 50, 80} {
		if answered[allowed] == 0 || refused[allowed] > 10 {
			t.Errorf("allowed %d a second: %d were answered in %d seconds, and %d refused", allowed, answered[allowed], seconds, refused[allowed])
		}
		if share := float64(answered[allowed]) / float64(allowed*seconds); isLong && share < 0.95 {
			t.Errorf("%.1f %% of %d a second was used", 100*share, allowed)
		}
	}
}
