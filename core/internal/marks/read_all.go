package marks

import (
	"context"
	"strings"
	"time"
)

// pageSize is about how many marks are read in one trip. After each page the reader rests for as long as
// that took, because reading is work for the processor: so 100,000 marks take one to two seconds, and
// calls beside it wait 2 ms at their 99th percentile. In one go, with 500 in a page, they waited 8 ms.
const pageSize = 100

// longestRest bounds these rests, so that a server far away does not make them long.
const longestRest = 2 * time.Millisecond

// readAll reads all marks, in pages. now is the time of Redis. A mark in the table that it does not find
// was lost or removed.
func (f *follower) readAll(ctx context.Context, now int64) error {
	s := f.set
	s.beginReading(f.mayRestore)
	start := s.Now()
	for cursor, more := "0", true; more; more = cursor != "0" {
		began := time.Now()
		page, next, err := f.page(ctx, cursor)
		if err != nil {
			s.endReading(true)
			return err
		}
		cursor = next
		for i := 1; i < len(page); i += 2 {
			if field := page[i-1]; !strings.Contains(field, " ") { // it is no mark
				continue
			}
			if m, err := s.read(page[i], now+s.Now()-start); err != nil {
				s.Log.MarkUnreadable(err)
			} else {
				s.put(m)
			}
		}
		time.Sleep(min(time.Since(began), longestRest))
	}
	f.lost = s.endReading(f.mayRestore)
	return nil
}

// page reads a page of the hash: fields and values in turn.
func (f *follower) page(ctx context.Context, cursor string) (page []string, next string, err error) {
	s := f.set
	err = s.redis.Operate(ctx, func(ctx context.Context) error {
		reply, err := s.redis.Command(ctx, "hscan", s.keys[0], cursor, "count", pageSize)
		if err != nil {
			return err
		}
		parts, _ := reply.([]any)
		if len(parts) != 2 {
			return unexpected([]any{reply})
		}
		next, _ = parts[0].(string)
		items, _ := parts[1].([]any)
		for _, item := range items {
			text, _ := item.(string)
			page = append(page, text)
		}
		return nil
	})
	return page, next, err
}
