package replay_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/replay"
	"github.com/accesslimit/accesslimit/core/replay/internal/accesslog"
)

// combined returns a log of calls by a number of subjects, one call in each span.
func combined(calls, subjects int, span time.Duration) io.Reader {
	n, rest := 0, []byte(nil)
	return readerFunc(func(p []byte) (int, error) {
		if len(rest) == 0 && n == calls {
			return 0, io.EOF
		}
		for ; n < calls && len(rest) < len(p); n++ {
			at, from := start.Add(time.Duration(n)*span), n*7919%subjects
			rest = fmt.Appendf(rest, "10.%d.%d.%d - - [%s] \"GET /items/%d?page=2 HTTP/1.1\" 200 5124 \"https://example.com/\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n",
				from>>16, from>>8&255, from&255, at.Format("02/Jan/2006:15:04:05 -0700"), n%1000)
		}
		copied := copy(p, rest)
		rest = rest[copied:]
		return copied, nil
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Memory depends on the subjects, and not on the lines.
func TestMemory(t *testing.T) {
	var first, last uint64
	options := replay.Options{Suggest: 99.9, Guards: []replay.Guard{{Rules: []core.Rule{{Name: "r", Limit: core.PerHour(5)}}}}}
	options.OnProgress = func(lines int) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		if last = m.HeapAlloc; first == 0 && lines > 10_000 {
			first = last
		}
	}
	if _, err := replay.Run(t.Context(), options, replay.Log{Name: "l", Reader: combined(80_000, 1000, time.Second)}); err != nil {
		t.Fatal(err)
	}
	if first == 0 || last > first+2<<20 {
		t.Errorf("%d KiB after 10,000 lines, and %d KiB after 80,000", first>>10, last>>10)
	}
}

// Deciding takes at most twice as long as reading the log alone. One operation is a log of 100,000 lines.
func BenchmarkRun(b *testing.B) {
	lines, err := io.ReadAll(combined(100_000, 10_000, time.Millisecond))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			l, err := accesslog.Open("l", bytes.NewReader(lines), accesslog.Format{}, time.UTC, new(accesslog.Counts))
			if err != nil {
				b.Fatal(err)
			}
			for m := accesslog.Merge([]*accesslog.Log{l}, false); m.Next() != nil; {
			}
		}
	})
	b.Run("decide", func(b *testing.B) {
		options := replay.Options{Guards: []replay.Guard{{Rules: []core.Rule{
			{Name: "api", Limit: core.PerMinute(100)}, {Name: "login", Limit: core.PerHour(5), Methods: []string{"POST"}, Paths: []string{"/login"}},
		}}}}
		for b.Loop() {
			if _, err := replay.Run(b.Context(), options, replay.Log{Name: "l", Reader: bytes.NewReader(lines)}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
