package audit

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/accesslimit/accesslimit/core/internal/actor"
	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
	"github.com/accesslimit/accesslimit/core/internal/redisstore"
)

// The script is in this package because it does not depend on algorithms.
//
//go:embed append.lua
var appendText string

var appendScript = algorithm.NewScript(appendText)

// Stream is a Trail in Redis, for all processes of a prefix.
type Stream struct {
	redis         *redisstore.Store
	key, versions string
}

// NewStream returns the stream of a prefix. The hash tag of its keys cannot belong to a subject,
// where two hex digits follow each %.
func NewStream(redis *redisstore.Store, prefix string) *Stream {
	return &Stream{redis, prefix + ":{%audit}:as1", prefix + ":{%audit}:av1"}
}

// Append implements Trail. Its errors are those of the context, and *failure.Error.
func (s *Stream) Append(ctx context.Context, e Entry) error {
	return s.append(ctx, e, []string{s.key}, "", "")
}

// AppendChange implements Trail.
func (s *Stream) AppendChange(ctx context.Context, e Entry, before, now string) error {
	return s.append(ctx, e, []string{s.key, s.versions}, actor.Cut(before), actor.Cut(now))
}

func (s *Stream) append(ctx context.Context, e Entry, keys []string, before, now string) error {
	e = e.cut()
	var fields []any
	for _, f := range e.fields() {
		if *f.value != "" {
			fields = append(fields, f.name, *f.value)
		}
	}
	args := append([]any{maxEntries, maxVersions, before, now, len(fields)}, fields...)
	return s.redis.Operate(ctx, func(ctx context.Context) error {
		_, err := s.redis.Script(ctx, appendScript, keys, args...)
		return err
	})
}

// read implements Trail.
func (s *Stream) read(ctx context.Context, before string, n int) (entries []Entry, err error) {
	from := "+"
	if before != "" {
		from = "(" + before
	}
	err = s.redis.Operate(ctx, func(ctx context.Context) error {
		defer s.redis.Turn(ctx)()
		reply, err := s.redis.Command(ctx, "xrevrange", s.key, from, "-", "count", n)
		if err == nil {
			entries, err = readEntries(reply)
		}
		return err
	})
	return entries, err
}

// readEntries reads the reply of XREVRANGE: for each entry its ID, and a list of its fields and
// their values. It leaves out unknown fields.
func readEntries(reply any) (entries []Entry, err error) {
	list, _ := reply.([]any)
	for _, item := range list {
		e, ok := readEntry(item)
		if !ok {
			return nil, &failure.Error{Class: failure.Unexpected, Err: fmt.Errorf("the stream has an entry %v, which cannot be read", item)}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func readEntry(item any) (e Entry, ok bool) {
	pair, _ := item.([]any)
	if len(pair) != 2 {
		return e, false
	}
	e.ID, _ = pair[0].(string)
	at, ok := parsePosition(e.ID)
	e.Time = at.time()
	values, isList := pair[1].([]any)
	for i := 0; i+1 < len(values); i += 2 {
		for _, f := range e.fields() {
			if f.name == values[i] {
				*f.value, _ = values[i+1].(string)
			}
		}
	}
	return e, ok && isList
}
