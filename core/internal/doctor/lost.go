package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/losses"
)

// lost adds what servers have lost in the last day, as the services noticed it.
func (e *exam) lost(ctx context.Context) {
	found, err := ask(ctx, e, e.Losses)
	if err != nil {
		e.unseen("losses", nil, "what was lost in the last day", err)
		return
	}
	for _, l := range found {
		e.add(Problem, "losses", &server{addr: l.Server}, "at "+l.Time.Format(time.RFC3339)+" a service noticed that the server had lost "+l.Lost+": "+l.How, losses.Repeat)
	}
	if len(found) == 0 {
		e.add(OK, "losses", nil, "no service has noticed a loss of data in the last day", "")
	}
}

// document looks whether the document with the rules can be read.
func (e *exam) document(ctx context.Context) {
	_, err := ask(ctx, e, func(ctx context.Context) (struct{}, error) { return struct{}{}, e.Document(ctx) })
	switch {
	case err == nil:
	case failure.ClassOf(err) == failure.Foreign:
		e.add(Problem, "document", nil, fmt.Sprintf("services that start use their fallback: %v", err), "remove the key, and publish the document again")
	default:
		e.unseen("document", nil, "whether the document with the rules can be read", err)
	}
}
