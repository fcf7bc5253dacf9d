package marks

import (
	"context"
	"slices"
	"time"
)

const (
	// restoredAtOnce is how many marks a process writes back in one reading. With writingFor, that is so
	// slow that all processes can follow the stream.
	restoredAtOnce = 2_000
	// writingFor is how long a process keeps the others from writing back, so that they first read what
	// it has written.
	writingFor = 300 * time.Millisecond
)

// restore writes back a part of the marks that Redis has lost, unless another process has done it or
// is doing it. Later marks have higher numbers, so they stay.
func (f *follower) restore(ctx context.Context) error {
	s := f.set
	f.lost = slices.DeleteFunc(f.lost, func(m *Mark) bool { return !s.isMissing(m) })
	if len(f.lost) == 0 {
		f.finishRestore()
		return nil
	}
	if mine, err := f.keepOthersOff(ctx); err != nil || !mine {
		return err
	}
	part := f.lost[:min(len(f.lost), restoredAtOnce)]
	for page := range slices.Chunk(part, inATrip) {
		var acts []act
		for _, m := range page {
			acts = append(acts, act{Mark: m})
		}
		results, err := s.write(ctx, 0, acts)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.mark != nil {
				f.restored++
			}
		}
	}
	if f.lost = f.lost[len(part):]; len(f.lost) == 0 {
		f.finishRestore()
	}
	return nil
}

func (f *follower) finishRestore() {
	if f.restored > 0 {
		f.set.Log.MarksWrittenBack(f.restored)
	}
	f.lost, f.restored = nil, 0
}

// keepOthersOff reports whether this process may write back now.
func (f *follower) keepOthersOff(ctx context.Context) (mine bool, err error) {
	s := f.set
	err = s.redis.Operate(ctx, func(ctx context.Context) error {
		reply, err := s.redis.Command(ctx, "set", s.keys[4], "", "nx", "px", writingFor.Milliseconds())
		mine = reply != nil
		return err
	})
	return mine, err
}
