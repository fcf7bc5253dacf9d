package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	liveName = "live"
	// maxStreams bounds the streams of events, each of which holds a connection. One person may have
	// maxStreamsEach, so that nobody can take them all.
	maxStreams     = 64
	maxStreamsEach = 16
	// streamLife is how long a stream lasts. Browsers then open the next one, so that rights are
	// checked again, and so that a proxy which holds back incomplete replies passes this one on.
	streamLife = time.Minute
	// streamPatience is how long a reader may take for an event.
	streamPatience = 10 * time.Second
)

// padding fills the buffers of proxies that pass nothing on until they hold some kilobytes.
var padding = ":" + strings.Repeat(" ", 4<<10) + "\n\n"

// streams counts the open streams of events.
type streams struct {
	mu   sync.Mutex
	all  int
	each map[string]int // by the name of the reader
}

// open counts a stream, and reports whether there is room for it. If so, close must follow.
func (s *streams) open(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == maxStreams || s.each[name] == maxStreamsEach {
		return false
	}
	if s.each == nil {
		s.each = make(map[string]int)
	}
	s.all++
	s.each[name]++
	return true
}

func (s *streams) close(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.each[name]--; s.each[name] == 0 {
		delete(s.each, name)
	}
}

// stream sends the first page's figures as server-sent events, until the reader leaves, the page is
// closed, or streamLife has passed. Each event is a piece of HTML, as a string in JSON, which has
// no line breaks.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, who Identity) {
	if !h.streams.open(who.Name) {
		h.fail(w, r, http.StatusServiceUnavailable, "Too many pages are live. Reload this page to see new figures.")
		return
	}
	defer h.streams.close(who.Name)
	if !flushes(w) {
		h.fail(w, r, http.StatusNotImplemented, "A middleware of this service prevents live figures.")
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		h.sendEvents(w, r)
	}
}

// flushes reports whether a reply can be sent in parts, as http.ResponseController finds it out.
func flushes(w http.ResponseWriter) bool {
	for {
		switch inner := w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return false
		}
	}
}

// sendEvents sends events until the stream ends.
func (h *Handler) sendEvents(w http.ResponseWriter, r *http.Request) {
	to := http.NewResponseController(w)
	defer func() { _ = to.SetWriteDeadline(time.Time{}) }() // not every server supports it
	ended := time.NewTimer(h.streamLife)
	defer ended.Stop()
	ticker := time.NewTicker(samplePause)
	defer ticker.Stop()
	gone := left(r)
	for text := padding + "retry: 2000\n\n"; ; text = "" {
		_ = to.SetWriteDeadline(time.Now().Add(streamPatience))
		event, err := h.event()
		if err == nil {
			_, err = w.Write([]byte(text + "data: " + event + "\n\n"))
		}
		if err != nil || to.Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ended.C:
			return
		case <-gone:
			return
		case <-h.closed:
			return
		}
	}
}

// left returns a channel that is closed when the reader leaves. Only net/http notices that. Under
// other servers the channel is nil, and writing the next event fails.
func left(r *http.Request) <-chan struct{} {
	if r.Context().Value(http.ServerContextKey) == nil {
		return nil
	}
	return r.Context().Done()
}

// event returns the figures as a string in JSON.
func (h *Handler) event() (string, error) {
	var body bytes.Buffer
	if err := templates.ExecuteTemplate(&body, "figures", h.now()); err != nil {
		return "", err
	}
	text, err := json.Marshal(body.String())
	return string(text), err
}
