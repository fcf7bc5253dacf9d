package overrides

import (
	"context"
	"errors"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// memory is the Table of a name in this process.
type memory struct {
	store *memstore.Store
	name  string
	most  int // of all names
}

func (m memory) key(subject string) []byte {
	return rediskey.Append(nil, "", subject, rediskey.OverrideTail(m.name))
}

// Set implements Table.
func (m memory) Set(_ context.Context, subject string, o *algorithm.Override) (before string, existed bool, err error) {
	o.Set = m.store.Now()
	if o.Ends > 0 && o.Ends <= o.Set {
		return "", false, ErrEnded
	}
	// The subject is copied, because a framework may have lent it for one call.
	named := memstore.NamedOverride{Name: m.name, Subject: strings.Clone(subject), Override: *o}
	named.Note = strings.Clone(o.Note)
	was, existed, err := m.store.SetOverride(m.key(subject), named, m.most)
	if errors.Is(err, memstore.ErrTooManyOverrides) {
		err = ErrTooMany
	}
	return Stored(&was.Override, existed), existed, err
}

// Get implements Table.
func (m memory) Get(_ context.Context, subject string) (text string, ok bool, err error) {
	found, ok := m.store.Override(m.key(subject))
	return Stored(&found.Override, ok), ok, nil
}

// Remove implements Table.
func (m memory) Remove(_ context.Context, subject string) (before string, existed bool, err error) {
	was, existed := m.store.RemoveOverride(m.key(subject))
	return Stored(&was.Override, existed), existed, nil
}

// List implements Table.
func (m memory) List(_ context.Context, after string, n int) (page []Entry, next string, err error) {
	for _, o := range m.store.Overrides(m.name, after, n) {
		page = append(page, Entry{Subject: o.Subject, Text: Stored(&o.Override, true)})
	}
	if len(page) == n {
		next = page[n-1].Subject
	}
	return page, next, nil
}

// Stored returns the stored form of an override, which was checked when it was set.
func Stored(o *algorithm.Override, exists bool) string {
	if !exists {
		return ""
	}
	text, _ := o.Append(nil)
	return string(text)
}
