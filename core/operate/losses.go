package operate

import (
	"context"
	"time"
)

// Loss is what a Redis server has lost: see [Operator.Losses].
type Loss struct {
	// Time is when the first process noticed the loss, by the clock of Redis.
	Time time.Time `json:"time"`
	// Server is the address of the server, as the client of that process has it.
	Server string `json:"server"`
	// Lost is "everything", or says which of the latest writes.
	Lost string `json:"lost"`
	// How says how that happened, as far as it is known.
	How string `json:"how"`
}

// Losses returns what the Redis servers have lost in the last day, newest first, as the processes
// with this Prefix noticed it: after a restart, a failover or FLUSHALL. At most 100 losses are
// kept, in Redis, so a further loss may erase this list too. A loss while no process runs is not
// noticed. Without Redis, there are none.
//
// Errors are those of [core.Counter].
func (o *Operator) Losses(ctx context.Context) ([]Loss, error) {
	if err := o.made(); err != nil {
		return nil, err
	}
	found, err := o.parts.Losses.Recent(ctx)
	if err != nil {
		return nil, o.front.Failed("losses", err)
	}
	all := make([]Loss, len(found))
	for i, l := range found {
		all[i] = Loss(l)
	}
	return all, nil
}
