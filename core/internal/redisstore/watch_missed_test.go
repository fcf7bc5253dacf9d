package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// A server that could not be looked at, or was just being looked at, is looked at again: what was to be found out is found out.
func TestNoLookIsMissed(t *testing.T) {
	finds := func(t *testing.T, runID string, w *watch) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			w.mu.Lock()
			found := w.runID
			w.mu.Unlock()
			if found == runID {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the server is taken for %q, and is %q", found, runID)
			}
			w.hears(false)
		}
	}
	t.Run("after one that failed", func(t *testing.T) {
		var looks atomic.Int32
		w := &watch{all: &common{timeout: time.Minute, listener: nobody{}}, read: func(context.Context) (string, error) {
			if looks.Add(1) == 1 {
				return "", errors.New("a connection to the server that was there before")
			}
			return "run_id:new\r\n", nil
		}}
		finds(t, "new", w)
	})
	t.Run("during another", func(t *testing.T) {
		w := &watch{all: &common{timeout: time.Minute, listener: nobody{}}}
		reads, goesOn := make(chan struct{}, 1), make(chan struct{})
		var looks atomic.Int32
		w.read = func(context.Context) (string, error) {
			if looks.Add(1) > 1 {
				return "run_id:new\r\n", nil
			}
			reads <- struct{}{}
			<-goesOn
			return "run_id:old\r\n", nil
		}
		w.hears(false)
		<-reads
		w.hears(true) // the server was restarted meanwhile
		close(goesOn)
		finds(t, "new", w)
	})
}
