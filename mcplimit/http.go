package mcplimit

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// HTTP returns a handler around the SDK's StreamableHTTPHandler. It shows middlewares the address and
// the host of each call, which the SDK does not, and sends a refusal with its status, Retry-After and
// the RateLimit headers. Without it, all callers without a token share a counter, and no header is
// believed for their address, not even with "unix" in TrustedProxies.
func HTTP(next http.Handler) http.Handler { return Options{}.HTTP(next) }

// HTTP is the function HTTP with these Options.
func (o Options) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := strconv.FormatUint(ids.Add(1), 36)
		out := &reply{w: w, header: make(http.Header), outer: w.Header().Clone(), statusOK: o.StatusOK}
		replies.Store(id, out)
		defer out.end()
		defer replies.Delete(id)
		inner := r.WithContext(r.Context())
		inner.Header = maps.Clone(r.Header)
		if inner.Header == nil {
			inner.Header = make(http.Header)
		}
		inner.Header[mark] = []string{id, r.RemoteAddr, r.Host}
		if r.Body != nil {
			inner.Body = &body{ReadCloser: r.Body, reply: out}
		}
		next.ServeHTTP(writer{out}, inner)
	})
}

// mark is the header by which a middleware finds the HTTP request of its call: the SDK shows it
// nothing else of the request, and the context is that of the session. No client can send it, because
// net/http puts names into canonical form.
const mark = "mcplimit-call"

// replies holds the replies that have not ended, by the id in their mark.
var (
	replies sync.Map
	ids     atomic.Uint64
)

// marked returns what HTTP left in the header.
func marked(header http.Header) (id, remote, host string) {
	//lint:ignore SA1008 the name is not canonical on purpose
	if lines := header[mark]; len(lines) == 3 {
		return lines[0], lines[1], lines[2]
	}
	return "", "", ""
}

// replyTo returns the reply to a call with this header. For a call of a batch, and one that did not
// come through HTTP, it is one that nobody reads.
func replyTo(header http.Header) *reply {
	id, _, _ := marked(header)
	if found, ok := replies.Load(id); ok && !found.(*reply).batch.Load() {
		return found.(*reply)
	}
	return &reply{header: make(http.Header)}
}

// reply is the HTTP reply to one call. The handler of a session runs beside that of the request, so
// the headers are kept here until the first byte is sent.
type reply struct {
	batch    atomic.Bool // the request holds several calls
	statusOK bool        // see Options.StatusOK

	mu     sync.Mutex
	w      http.ResponseWriter // nil when the request has ended
	header http.Header
	outer  http.Header // what middlewares around HTTP have set
	sent   bool
	status int   // of a refusal, or 0
	code   int64 // of the JSON-RPC error of a refusal
}

// Set implements adapter.HeaderWriter.
func (r *reply) Set(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.header.Set(name, value)
}

// Add implements adapter.HeaderWriter.
func (r *reply) Add(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name = http.CanonicalHeaderKey(name)
	if _, begun := r.header[name]; !begun {
		r.header[name] = slices.Clone(r.outer[name])
	}
	r.header[name] = append(r.header[name], value)
}

// Values returns the lines of a header, set by this middleware or one around it.
func (r *reply) Values(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lines := r.header.Values(name); lines != nil {
		return slices.Clone(lines)
	}
	return r.outer.Values(name)
}

// Get returns what Set was given, by this middleware or one around it.
func (r *reply) Get(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value := r.header.Get(name); value != "" {
		return value
	}
	return r.outer.Get(name)
}

// refuse notes that the call was refused.
func (r *reply) refuse(status int, code int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.header.Del("Content-Type") // of a problem detail, which is not sent
	if r.statusOK && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		return
	}
	r.status, r.code = status, code
}

func (r *reply) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w = nil
}

// begin sends the status and the headers, unless they were sent.
func (r *reply) begin(status int) {
	if r.sent {
		return
	}
	r.sent = true
	maps.Copy(r.w.Header(), r.header)
	r.w.WriteHeader(status)
}

// refusal returns the JSON-RPC error in b if that is the refusal, as the SDK writes it: alone, or as
// an event.
func (r *reply) refusal(b []byte) (message []byte, ok bool) {
	if r.status == 0 || r.sent {
		return nil, false
	}
	if _, data, isEvent := bytes.Cut(b, []byte("data: ")); isEvent && !bytes.HasPrefix(b, []byte("{")) {
		b = bytes.TrimSpace(data)
	}
	var response struct{ Error *struct{ Code int64 } }
	if json.Unmarshal(b, &response) != nil || response.Error == nil || response.Error.Code != r.code {
		return nil, false // a middleware around made something else of the refusal
	}
	return b, true
}

// writer is what the SDK writes to.
type writer struct{ r *reply }

// Unwrap lets http.ResponseController find the server's writer. The SDK flushes after it has written.
func (w writer) Unwrap() http.ResponseWriter {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	return w.r.w
}

// Header implements http.ResponseWriter.
func (w writer) Header() http.Header {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	if w.r.w == nil {
		return make(http.Header)
	}
	return w.r.w.Header()
}

// WriteHeader implements http.ResponseWriter.
func (w writer) WriteHeader(status int) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	if w.r.w != nil {
		w.r.begin(status)
	}
}

// Write implements http.ResponseWriter.
func (w writer) Write(b []byte) (int, error) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	if w.r.w == nil {
		return 0, io.ErrClosedPipe
	}
	if message, ok := w.r.refusal(b); ok {
		w.r.w.Header().Set("Content-Type", "application/json")
		w.r.begin(w.r.status)
		_, err := w.r.w.Write(message)
		return len(b), err
	}
	w.r.begin(http.StatusOK)
	return w.r.w.Write(b)
}

// body notes whether a request is a batch, which is an array.
type body struct {
	io.ReadCloser
	reply *reply
	begun bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	if text := bytes.TrimLeft(p[:n], " \t\r\n"); !b.begun && len(text) > 0 {
		b.begun = true
		b.reply.batch.Store(text[0] == '[')
	}
	return n, err
}
