package adaptertest

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/accesslimit/accesslimit/core"
)

// hopScenarios are tricks with addresses. Every adapter must find the same caller for the same peer
// and headers.
var hopScenarios = []scenario{
	{name: "tricks with the peer", run: hopsBy("", peerTricks)},
	{name: "tricks with X-Forwarded-For", run: hopsBy("X-Forwarded-For", forTricks)},
	{name: "tricks with Forwarded", run: hopsBy("Forwarded", forwardedTricks)},
	{name: "tricks with a header of one address", run: hopsBy("X-Real-IP", realTricks)},
	{name: "tricks with header lines", run: hopsBy("X-Forwarded-For", lineTricks), httpOnly: true},
	{name: "tricks with trailers", run: hopsBy("Cf-Connecting-Ip", trailerTricks), httpOnly: true},
}

// trick is a call through a proxy, and the caller that must be counted.
type trick struct {
	peer  string   // where the connection comes from; unset: 10.0.0.1, a trusted proxy
	lines []string // values of the header, one a line; one with ": " in it is a whole line
	want  string   // the subject, without its "ip:"
}

// refused, in place of a caller, means that the framework's server answers 400 and nobody is
// counted.
const refused = ""

// hopsBy returns site.hops as a scenario.
func hopsBy(header string, tricks []trick) func(*testing.T, *site) {
	return func(t *testing.T, s *site) { s.hops(t, header, tricks) }
}

// hops serves an app that reads this header, or trusts no proxy if header is empty, and tries each
// trick.
func (s *site) hops(t testing.TB, header string, tricks []trick) {
	var ip core.ClientIP
	if header != "" {
		ip = core.ClientIP{TrustedProxies: []string{"10.0.0.0/8", "fd00::/8", "unix"}, Header: header}
	}
	var counted atomic.Value
	s.peers = new(from)
	s.serve(t, App{
		Limiter: s.limiter(t, func(o *core.Options) {
			o.ClientIP = ip
			o.OnDecision = func(_ context.Context, e core.Event) { counted.Store(e.Decision.Key) }
		}),
		Routes: []Route{{Path: "/shop/list", limits: limit(core.Rule{Seconds: 600, MaxCount: 100_000})}},
	})
	for _, trick := range tricks {
		counted.Store("nobody")
		s.peers.show(peerNamed(t, cmp.Or(trick.peer, "10.0.0.1")))
		reply := s.raw(t, "GET", "/shop/list", trick.headers(header)...)
		if reply.Status == 400 && counted.Load() == "nobody" && trick.isFolded() && !s.adapter.can(FoldedHeaders) {
			continue
		}
		if want, status := trick.counted(); counted.Load() != want || reply.Status != status {
			t.Errorf("from %q with %.200q: counted as %v, status %d; want %s and %d", trick.peer, trick.lines, counted.Load(), reply.Status, want, status)
		}
	}
}

// counted returns the subject that must be counted and the status that the caller must get.
func (trick trick) counted() (subject string, status int) {
	if trick.want == refused {
		return "nobody", 400
	}
	return "ip:" + trick.want, 200
}

// isFolded reports whether a line begins with white space, and so continues the line before it. The
// first line may, because another header comes before it.
func (trick trick) isFolded() bool {
	wire := "\n" + strings.Join(trick.lines, "\r\n")
	return strings.Contains(wire, "\n ") || strings.Contains(wire, "\n\t")
}

// headers returns the trick's lines as whole header lines.
func (trick trick) headers(name string) (headers []string) {
	for _, line := range trick.lines {
		if !strings.Contains(line, ": ") {
			line = name + ": " + line
		}
		headers = append(headers, line)
	}
	return headers
}

// lines returns its arguments: the lines of a header.
func lines(of ...string) []string { return of }

// chunked returns the last header line of a request, then a body in chunks and its trailers.
func chunked(text string, trailers ...string) string {
	if text != "" {
		text = fmt.Sprintf("%x\r\n%s\r\n", len(text), text)
	}
	return strings.Join(append([]string{"Transfer-Encoding: chunked\r\n\r\n" + text + "0"}, trailers...), "\r\n")
}
