package abandoned

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/algorithm"
	"github.com/accesslimit/accesslimit/core/internal/failure"
)

// failing is a store that does not answer its first question.
type failing struct {
	Store
	with  failure.Class
	asked int
}

func (f *failing) InBackground(do func()) { go do() }

func (f *failing) Change(context.Context, *algorithm.Change) error {
	if f.asked++; f.asked == 1 {
		return &failure.Error{Class: f.with, Err: errors.New("no answer")}
	}
	return nil
}

// A turn that the store was not asked for is tried again. One that may have come back is not.
func TestTurnsAfterAFailure(t *testing.T) {
	for class, want := range map[failure.Class]int{failure.BreakerOpen: 2, failure.Timeout: 1} {
		synctest.Test(t, func(t *testing.T) {
			store := &failing{with: class}
			turns := New(store, func(err error) { t.Error(err) })
			<-turns.Leave(Turn{Charge: algorithm.Charge{Key: []byte("k"), Cost: 1}, Counts: time.Hour})
			time.Sleep(2 * shortestWait)
			synctest.Wait()
			if store.asked != want {
				t.Errorf("%s: the store was asked %d times, want %d", class, store.asked, want)
			}
		})
	}
}
