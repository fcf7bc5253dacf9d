package outgoing

import (
	"context"
	"io"
	"net/http"
)

// releaseAfter releases the turn when the body of its response is closed, or read to its end, or when the
// context of the call ends, which ends its connection too, even if nobody closes the body.
func releaseAfter(ctx context.Context, r *http.Response, turn *Turn) {
	if r.Body == nil || r.Body == http.NoBody {
		turn.Release()
		return
	}
	if turn.slot.Hold != nil && ctx.Done() != nil {
		turn.ReleaseAfter(ctx)
	}
	followed := &body{r.Body, turn}
	if w, ok := r.Body.(io.Writer); ok { // of a connection that has changed its protocol
		r.Body = &upgraded{followed, w}
		return
	}
	r.Body = followed
}

// body is the body of a response to a call that holds a turn.
type body struct {
	io.ReadCloser
	turn *Turn
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.turn.Release()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.turn.Release()
	return b.ReadCloser.Close()
}

// upgraded is the body of a response with status 101, which can be written to.
type upgraded struct {
	*body
	io.Writer
}
