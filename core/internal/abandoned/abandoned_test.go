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
	asked []int64 // the Given of each turn
}

func (f *failing) InBackground(do func()) { go do() }

func (f *failing) GiveBackTurn(_ context.Context, turn algorithm.Charge) (stays int64, err error) {
	if f.asked = append(f.asked, turn.Given); len(f.asked) == 1 {
		return 0, &failure.Error{Class: f.with, Err: errors.New("no answer")}
	}
	return 0, nil
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
			if len(store.asked) != want {
				t.Errorf("%s: the store was asked %d times, want %d", class, len(store.asked), want)
			}
		})
	}
}

// Of two rests of one turn, the one with the newest permit comes first.
func TestRestsOfOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{with: failure.BreakerOpen}
		turns := New(store, func(err error) { t.Error(err) })
		of := func(given int64) Turn {
			return Turn{Charge: algorithm.Charge{Key: []byte("k"), Cost: 1, Position: 9, Given: given}, Counts: time.Hour}
		}
		turns.Leave(of(1))
		turns.Leave(of(0))
		time.Sleep(2 * shortestWait)
		synctest.Wait()
		if n := len(store.asked); n != 3 || store.asked[n-2] != 0 || store.asked[n-1] != 1 {
			t.Errorf("the store was asked for the turns with %v given, want 0 and then 1 in the end", store.asked)
		}
	})
}
