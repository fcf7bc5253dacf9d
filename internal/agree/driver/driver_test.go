// Package driver runs random histories of calls against the library's public API and writes down
// everything that can be seen of them. "make agree" compiles it into two versions of the library and
// compares what they write. So it uses nothing that is inside of the library, but the clocks: those of
// scripts by internal/scriptclock, and the wall clock by internal/agree/wall.
//
// A history runs in a bubble of testing/synctest: time passes only when the driver says so, and after
// each operation it waits until everything in the background has ended.
package driver

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// socket is the environment variable that names the unix socket of the Redis to use. If it is set, the
// program reads requests from its standard input and writes histories to its standard output.
const socket = "ACCESSLIMIT_AGREE_REDIS"

// TestHistories serves requests, each a line: the seed, the number of a history, how many operations it
// has, and the operations to leave out; perhaps then "at", and when the lines of the reply begin, in
// nanoseconds. The reply ends with an empty line. Without a server to use, it checks that a history can
// be repeated.
func TestHistories(t *testing.T) {
	addr := os.Getenv(socket)
	if addr == "" {
		testRepeated(t)
		return
	}
	requests, out, server := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout), connect("unix", addr)
	requests.Buffer(nil, 1<<20)
	testClocks(t, server)
	for requests.Scan() {
		request, times, _ := strings.Cut(requests.Text(), " at ")
		numbers, without := parse(t, request), make(map[int]bool)
		for _, id := range numbers[3:] {
			without[id] = true
		}
		fmt.Fprintf(out, "%s\n", run(t, server, uint64(numbers[0]), uint64(numbers[1]), numbers[2], without, parse(t, times)))
		_ = out.Flush()
	}
}

// The clocks that count obey the driver. If this fails, the library reads its clock in another way, and
// run has to follow.
func testClocks(t *testing.T, server *client) {
	for _, counts := range []*client{nil, server} {
		synctest.Test(t, func(t *testing.T) {
			h := &history{client: counts, logger: slog.New(slog.DiscardHandler)}
			h.begin()
			limiter, err := core.New(h.timed(core.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			defer limiter.Close()
			log := limiter.MustLog("clock", core.PerDay(5).Log())
			h.step(-time.Hour, false)
			if _, err = log.Allow(t.Context(), "subject", ""); err != nil {
				t.Fatal(err)
			}
			records, err := log.Records(t.Context(), "subject")
			if err != nil || len(records) != 1 || !records[0].Time.Before(beginning) {
				t.Fatalf("an hour was stepped back from %v, and a call was at %v, %v", beginning, records, err)
			}
		})
	}
}

func parse(t *testing.T, words string) (numbers []int) {
	for _, word := range strings.Fields(words) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// A history depends on nothing but its number: otherwise versions could not be compared.
func testRepeated(t *testing.T) {
	server := connect("tcp", redistest.Start(t).Addr())
	for number := range uint64(8) {
		first, second := run(t, server, 1, number, 100, nil, nil), run(t, server, 1, number, 100, nil, nil)
		if first != second {
			t.Errorf("history %d is\n%s\nand then\n%s", number, first, second)
		}
	}
}
