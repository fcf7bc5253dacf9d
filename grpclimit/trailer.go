package grpclimit

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// lastTrailers holds trailers that an interceptor inside may still replace. gRPC can only add to
// trailers that it was given, so the outermost interceptor sends these when the handler has
// returned.
type lastTrailers struct {
	stream grpc.ServerTransportStream
	mu     sync.Mutex // a handler may run other calls in its own context at the same time
	md     metadata.MD
}

type lastTrailersKey struct{}

// lastTrailersOf returns the trailers that an interceptor around this one has started for the same
// call, or nil.
func lastTrailersOf(ctx context.Context, stream grpc.ServerTransportStream) *lastTrailers {
	last, _ := ctx.Value(lastTrailersKey{}).(*lastTrailers)
	if last == nil || !reflect.ValueOf(stream).Comparable() || last.stream != stream {
		// There are none, or ctx is that of a handler that calls this method within the process.
		return nil
	}
	return last
}

func (l *lastTrailers) set(name, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.md[name] = []string{value}
}

func (l *lastTrailers) get(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lines := l.md[name]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

func (l *lastTrailers) send() {
	if l.stream == nil { // a call within the process
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.stream.SetTrailer(l.md) // fails only when the call is over
}

// trailer takes the headers of the core. The lines of an allowed call are part of it, which saves
// an allocation for each.
type trailer struct {
	ctx   context.Context
	md    metadata.MD
	lines [2]string
	used  int
	text  [96]byte      // of one line; written once
	last  *lastTrailers // once they are needed
	outer bool          // an interceptor around this one sends them
}

// Set implements adapter.HeaderWriter.
func (t *trailer) Set(name, value string) {
	if !t.findLast() {
		t.last = &lastTrailers{stream: grpc.ServerTransportStreamFromContext(t.ctx), md: make(metadata.MD)}
	}
	t.last.set(lower(name), value)
}

// Get returns what Set was given, by this interceptor or one around it.
func (t *trailer) Get(name string) string {
	if !t.findLast() {
		return ""
	}
	return t.last.get(lower(name))
}

// findLast reports whether there are trailers that are sent last.
func (t *trailer) findLast() bool {
	if t.last == nil {
		t.last = lastTrailersOf(t.ctx, grpc.ServerTransportStreamFromContext(t.ctx))
		t.outer = t.last != nil
	}
	return t.last != nil
}

// Add implements adapter.HeaderWriter.
func (t *trailer) Add(name, value string) {
	if t.md == nil {
		t.md = make(metadata.MD, len(t.lines))
	}
	name = lower(name)
	if lines := t.md[name]; lines != nil || t.used == len(t.lines) {
		t.md[name] = append(lines, value)
		return
	}
	t.lines[t.used] = value
	t.used++
	t.md[name] = t.lines[t.used-1 : t.used : t.used]
}

// AddBytesV is Add for a value that is valid during the call only.
func (t *trailer) AddBytesV(name string, value []byte) {
	if len(value) == 0 || len(value) > len(t.text) || t.text[0] != 0 {
		t.Add(name, string(value))
		return
	}
	t.Add(name, unsafe.String(&t.text[0], copy(t.text[:], value)))
}

// lower returns a name in gRPC's spelling, without an allocation for the two names of an allowed
// call.
func lower(name string) string {
	switch name {
	case "Ratelimit":
		return "ratelimit"
	case "Ratelimit-Policy":
		return "ratelimit-policy"
	default:
		return strings.ToLower(name)
	}
}
