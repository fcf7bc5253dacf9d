package core

import (
	"context"
	"errors"
	"strings"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/memstore"
	"github.com/accesslimit/accesslimit/core/internal/overrides"
	"github.com/accesslimit/accesslimit/core/internal/rediskey"
)

// memoryOverrides is the overrideTable of a name in this process.
type memoryOverrides struct {
	memory *memstore.Store
	name   string
	most   int // of all names
}

func (m memoryOverrides) key(subject string) []byte {
	return rediskey.Append(nil, "", subject, rediskey.OverrideTail(m.name))
}

// Set implements overrideTable.
func (m memoryOverrides) Set(_ context.Context, subject string, o *algorithm.Override) (before string, existed bool, err error) {
	o.Set = m.memory.Now()
	if o.Ends > 0 && o.Ends <= o.Set {
		return "", false, overrides.ErrEnded
	}
	// It is stored in texts of its own, because a framework may have lent the subject for one call.
	named := memstore.NamedOverride{Name: m.name, Subject: strings.Clone(subject), Override: *o}
	named.Note = strings.Clone(o.Note)
	was, existed, err := m.memory.SetOverride(m.key(subject), named, m.most)
	if errors.Is(err, memstore.ErrTooManyOverrides) {
		err = overrides.ErrTooMany
	}
	return stored(&was.Override, existed), existed, err
}

// Get implements overrideTable.
func (m memoryOverrides) Get(_ context.Context, subject string) (text string, ok bool, err error) {
	found, ok := m.memory.Override(m.key(subject))
	return stored(&found.Override, ok), ok, nil
}

// Remove implements overrideTable.
func (m memoryOverrides) Remove(_ context.Context, subject string) (before string, existed bool, err error) {
	was, existed := m.memory.RemoveOverride(m.key(subject))
	return stored(&was.Override, existed), existed, nil
}

// List implements overrideTable.
func (m memoryOverrides) List(_ context.Context, after string, n int) (page []overrides.Entry, next string, err error) {
	for _, o := range m.memory.Overrides(m.name, after, n) {
		page = append(page, overrides.Entry{Subject: o.Subject, Text: stored(&o.Override, true)})
	}
	if len(page) == n {
		next = page[n-1].Subject
	}
	return page, next, nil
}

// stored returns the stored form of an override, which was checked when it was set.
func stored(o *algorithm.Override, exists bool) string {
	if !exists {
		return ""
	}
	text, _ := o.Append(nil)
	return string(text)
}
