package core

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/felixge/httpsnoop"
)

// Response is what a handler sends under rules with Count or Concurrency, where the framework stands on net/http. See
// [Answer.Watch].
type Response struct {
	w      http.ResponseWriter
	status int

	holds bool    // it is to hold back the end of a body whose length was declared
	begun bool    // the header is sent
	left  int64   // bytes that are missing of the declared ones; -1: the length was not declared
	held  bool    // the last byte is missing below, and is this:
	last  [1]byte // the caller has all of the body when it has this one
}

// Watch returns what the handler of a call that goes on is to write to, and what becomes of its response. An adapter runs the
// handler in [Answer.Run], and calls [Response.Finish] when Run has returned, also by a panic. Where nothing is to be given
// back, this is w itself and nil.
//
// A client that knows the length of a body knows its end before the handler has returned, and could call again before the
// permit or the slot is given back. So the last byte is held back until then; it is sent earlier if the handler flushes or
// takes over the connection.
func (a Answer) Watch(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *Response) {
	holds := r.ProtoMajor == 1 && r.Method != http.MethodHead // the end of a stream of HTTP/2 is sent when the handler has returned
	if u := a.unfinished; u == nil || len(u.counted) == 0 && (!holds || len(u.slots) == 0) {
		return w, nil
	}
	s := &Response{w: w, holds: holds, left: -1}
	return httpsnoop.Wrap(w, s.hooks()), s
}

// Status returns the status that was sent: the first that is final, or 0 if the handler sent nothing. A connection that was
// taken over counts as 200, or 101.
func (s *Response) Status() int {
	if s == nil {
		return 0
	}
	return s.status
}

// Held returns how many bytes are held back.
func (s *Response) Held() int {
	if s.held {
		return 1
	}
	return 0
}

// Finish sends what was held back.
func (s *Response) Finish() {
	if s != nil && s.held {
		s.held = false
		_, _ = s.w.Write(s.last[:]) // a caller who has left needs no end
	}
}

// hooks are around the methods of the server's writer, which keeps all that it can do.
func (s *Response) hooks() httpsnoop.Hooks {
	return httpsnoop.Hooks{
		WriteHeader: func(do httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(code int) {
				do(code) // first, because it panics at what is no status
				s.sent(code)
				if s.status >= http.StatusOK {
					s.begin()
				}
			}
		},
		Write: func(do httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(b []byte) (int, error) { s.sent(http.StatusOK); return writeTo(s, b, do) }
		},
		WriteString: func(do httpsnoop.WriteStringFunc) httpsnoop.WriteStringFunc {
			return func(text string) (int, error) { s.sent(http.StatusOK); return writeTo(s, text, do) }
		},
		ReadFrom: func(do httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(from io.Reader) (n int64, err error) {
				if n, err = s.readFrom(from, do); n > 0 { // else nothing is sent: a handler may still make a 502 of it
					s.sent(http.StatusOK)
				}
				return n, err
			}
		},
		Flush: func(do httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() { s.sent(http.StatusOK); s.begin(); s.Finish(); do() }
		},
		Hijack: func(do httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			return func() (net.Conn, *bufio.ReadWriter, error) { s.sent(http.StatusOK); s.Finish(); return do() }
		},
	}
}

// sent notes a status.
func (s *Response) sent(code int) {
	if s.status < http.StatusOK && s.status != http.StatusSwitchingProtocols {
		s.status = code
	}
}

// begin reads the declared length when the header is sent: one that is declared later declares
// nothing, and a body that was taken to end there would be cut off.
func (s *Response) begin() {
	if s.begun || !s.holds {
		return
	}
	s.begun = true
	if length, err := strconv.ParseInt(s.w.Header().Get("Content-Length"), 10, 64); err == nil && length > 0 {
		s.left = length
	}
}

// writeTo writes b, without the last byte if that completes the body.
func writeTo[T string | []byte](s *Response, b T, do func(T) (int, error)) (n int, err error) {
	s.begin()
	if s.held && len(b) > 0 {
		return 0, http.ErrContentLength // below, the byte held back is missing still
	}
	if len(b) == 0 || int64(len(b)) != s.left {
		n, err = do(b)
		s.left = max(-1, s.left-int64(n))
		return n, err
	}
	end := len(b) - 1
	n, err = do(b[:end]) // also if that is nothing: it sends the header
	s.left -= int64(n)
	if err != nil || n < end {
		return n, err
	}
	s.left, s.held, s.last[0] = 0, true, b[end]
	return len(b), nil
}

// readFrom lets the server copy all but the last byte, as fast as it can.
func (s *Response) readFrom(from io.Reader, do func(io.Reader) (int64, error)) (n int64, err error) {
	s.begin()
	if s.left < 0 {
		return do(from)
	}
	if s.left > 1 {
		if n, err = s.copyLimited(from, s.left-1, do); err != nil || s.left > 1 {
			return n, err
		}
	}
	for { // from has ended, or it has the last byte, or more than was declared
		var b [1]byte
		if _, err = io.ReadFull(from, b[:]); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		if _, err = writeTo(s, b[:], s.w.Write); err != nil {
			return n, err
		}
		n++
	}
}

// copyLimited copies up to so many bytes, through a single io.LimitedReader: a file behind two is not sent by the system itself.
func (s *Response) copyLimited(from io.Reader, most int64, do func(io.Reader) (int64, error)) (n int64, err error) {
	limited := &io.LimitedReader{R: from, N: most}
	if outer, ok := from.(*io.LimitedReader); ok {
		limited = &io.LimitedReader{R: outer.R, N: min(most, outer.N)}
		defer func(before int64) { outer.N -= before - limited.N }(limited.N)
	}
	n, err = do(limited)
	s.left -= n
	return n, err
}
