package examples_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// Three processes with 100 workers use what the server allows. After each change of its limit, no more
// calls are refused than the ten that were in flight.
func TestOutgoing(t *testing.T) {
	c := command("outgoing", "REDIS_URL=redis://"+redistest.Start(t).Addr())
	c.Args = append(c.Args, "-seconds", "4")
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
			t.Errorf("allowed %d a second: %d were answered in 4 seconds, and %d refused", allowed, answered[allowed], refused[allowed])
		}
	}
}
