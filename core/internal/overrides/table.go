package overrides

import (
	"context"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// Table holds the overrides of a name in their stored form.
type Table interface {
	// Set writes an override, and returns the previous one. It sets the override's Set to the
	// current time. The error is ErrTooMany or ErrEnded if it cannot be written.
	Set(ctx context.Context, subject string, o *algorithm.Override) (before string, existed bool, err error)
	// Get returns the override of a subject.
	Get(ctx context.Context, subject string) (text string, ok bool, err error)
	// Remove removes the override of a subject, and returns it.
	Remove(ctx context.Context, subject string) (before string, existed bool, err error)
	// List returns at most n overrides in the order of their subjects, starting behind the subject
	// after. To get the next page, pass next as after; next is "" if this is the last page.
	List(ctx context.Context, after string, n int) (page []Entry, next string, err error)
}

// Tables are the tables of all names, in Redis or in this process.
type Tables struct {
	Redis   *redisstore.Store // nil if they are in this process
	KeyHead string            // of all keys in Redis
	Memory  *memstore.Store   // without Redis
	Most    int               // the largest number of overrides, of a name or in this process
}

// Of returns the table of a name.
func (t *Tables) Of(name string) Table {
	if t.Redis == nil {
		return memory{t.Memory, name, t.Most}
	}
	return New(t.Redis, t.KeyHead, name, t.Most)
}
