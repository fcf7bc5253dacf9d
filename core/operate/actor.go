package operate

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/actor"
)

// WithActor returns a context that names the operator who acts, with a note that gives the reason.
// With this context, Ban, Unban, Reset, and Set and Remove of [Overrides] write a line to
// Options.Logger, with the author, the note and the subject, and with the error if there was one.
// [Operator.Audit] returns the author and the note too. Each is cut at 255 bytes.
func WithActor(ctx context.Context, author, note string) context.Context {
	return actor.With(ctx, author, note)
}
