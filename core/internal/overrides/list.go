package overrides

import (
	"context"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/failure"
)

const (
	// cleanPage is how many entries a search looks at together.
	cleanPage = 1_000
	// listedAtOnce is how many entries a script call lists. Meanwhile other calls wait: about 0.2
	// ms for a hundred entries, and 1.2 ms for a thousand (slow log of Redis 7.0, on a busy
	// machine).
	listedAtOnce = 100
	// cleanTime bounds a search of the whole index.
	cleanTime = 30 * time.Second
)

// List returns overrides in the order of their subjects, starting behind the subject after. It
// looks at n entries of the index, some of which may no longer have an override. next is the last
// of these entries, or "" if there are no more.
func (s *Store) List(ctx context.Context, after string, n int) (page []Entry, next string, err error) {
	err = s.redis.Operate(ctx, func(ctx context.Context) error {
		next = after
		for left := n; left > 0; left -= listedAtOnce {
			found, end, _, err := s.list(ctx, next, min(left, listedAtOnce))
			if err != nil {
				return err
			}
			if page, next = append(page, found...), end; end == "" {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

func (s *Store) list(ctx context.Context, after string, n int) (page []Entry, next string, removed int, err error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	now, subjects, entered, err := s.listed(ctx, from, n)
	if err != nil || len(subjects) == 0 {
		return nil, "", 0, err
	}
	keys := make([]string, len(subjects))
	for i, subject := range subjects {
		keys[i] = s.key(subject)
	}
	stale := []any{keptFor}
	for i, value := range s.redis.GetAll(ctx, keys) {
		switch {
		case value.Ok, failure.ClassOf(value.Err) == failure.Foreign:
			page = append(page, Entry{subjects[i], value.Text, now})
		case value.Err != nil:
			return nil, "", 0, value.Err
		case now-entered[i] > keptFor:
			stale = append(stale, subjects[i], entered[i])
		}
	}
	if len(subjects) == n {
		next = subjects[n-1]
	}
	return page, next, s.forget(ctx, stale), nil
}

func (s *Store) listed(ctx context.Context, from string, n int) (now int64, subjects []string, entered []int64, err error) {
	defer s.redis.Turn(ctx)()
	reply, err := s.redis.Script(ctx, listScript, s.index, from, n)
	if err != nil {
		return 0, nil, nil, err
	}
	return readList(reply)
}

// forget removes entries from the index that have no override. An error does not matter: the next
// list tries again.
func (s *Store) forget(ctx context.Context, stale []any) (removed int) {
	if len(stale) == 1 {
		return 0
	}
	reply, err := s.redis.Script(ctx, forgetScript, s.index, stale...)
	if err != nil || len(reply) != 1 {
		return 0
	}
	n, _ := reply[0].(int64)
	return int(n)
}

// readList reads the reply of list.lua.
func readList(reply []any) (now int64, subjects []string, entered []int64, err error) {
	if len(reply)%2 != 1 {
		return 0, nil, nil, unexpected(reply)
	}
	now, ok := reply[0].(int64)
	for i := 1; i < len(reply); i += 2 {
		subject, isText := reply[i].(string)
		at, isTime := reply[i+1].(int64)
		ok = ok && isText && isTime
		subjects, entered = append(subjects, subject), append(entered, at)
	}
	if !ok {
		return 0, nil, nil, unexpected(reply)
	}
	return now, subjects, entered, nil
}

// clean removes the entries without an override from the whole index, in the background, and
// reports whether that was done before the context ended.
func (s *Store) clean(ctx context.Context) (done bool) {
	select {
	case <-s.startCleaning():
		return true
	case <-ctx.Done():
		return false
	}
}

// startCleaning starts a search of the index, unless one is under way, and returns a channel that
// is closed at its end.
func (s *Store) startCleaning() <-chan struct{} {
	s.mu.Lock()
	if s.cleaned != nil {
		defer s.mu.Unlock()
		return s.cleaned
	}
	ended := make(chan struct{})
	s.cleaned = ended
	s.mu.Unlock()
	s.redis.InBackground(func() {
		s.cleanAll()
		s.mu.Lock()
		s.cleaned = nil
		s.mu.Unlock()
		close(ended)
	})
	return ended
}

func (s *Store) cleanAll() {
	end := time.Now().Add(cleanTime)
	for after, more := "", true; more && time.Now().Before(end); more = after != "" {
		_, next, err := s.List(context.Background(), after, cleanPage)
		if err != nil {
			return
		}
		after = next
	}
}
