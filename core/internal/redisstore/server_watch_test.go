package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// watchInBubble runs a test of a watch, whose common part is closed afterwards.
func watchInBubble(t *testing.T, readInfo func(look int) (string, error), test func(t *testing.T, w *serverWatch, looks *atomic.Int32)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		w := &serverWatch{common: newCommon(time.Minute), readInfo: func(context.Context) (string, error) { return readInfo(int(looks.Add(1))) }}
		test(t, w, &looks)
		w.common.close()
	})
}

// If INFO could not be read, or was just being read, it is read again, so that no change is missed.
func TestNoChangeIsMissed(t *testing.T) {
	t.Run("after one that failed", func(t *testing.T) {
		watchInBubble(t, func(look int) (string, error) {
			if look == 1 {
				return "", errors.New("a connection to the server that was there before")
			}
			return "run_id:new\r\n", nil
		}, func(t *testing.T, w *serverWatch, _ *atomic.Int32) {
			for range 2 {
				w.answered(false)
				time.Sleep(refreshEvery)
				synctest.Wait()
			}
			if w.runID != "new" {
				t.Errorf("the server is taken for %q", w.runID)
			}
		})
	})
	t.Run("during another", func(t *testing.T) {
		watchInBubble(t, func(look int) (string, error) {
			if look > 1 {
				return "run_id:new\r\n", nil
			}
			time.Sleep(time.Second)
			return "run_id:old\r\n", nil
		}, func(t *testing.T, w *serverWatch, _ *atomic.Int32) {
			w.answered(false)
			synctest.Wait()
			w.answered(true) // the server was restarted meanwhile
			time.Sleep(time.Second + refreshEvery)
			synctest.Wait()
			if w.runID != "new" {
				t.Errorf("the server is taken for %q", w.runID)
			}
		})
	})
}

// A server that replies that it has no INFO is not asked for it again and again.
func TestAServerWithoutInfoIsAskedOnce(t *testing.T) {
	watchInBubble(t, func(int) (string, error) { return "", reply("ERR unsupported command 'info'") },
		func(t *testing.T, w *serverWatch, looks *atomic.Int32) {
			for range 100 {
				w.answered(false)
				time.Sleep(refreshEvery)
			}
			if n := looks.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
}

// Where INFO cannot be read, a mark that is gone may have been evicted, and the report says so.
func TestALossWithoutInfoMayBeAnEviction(t *testing.T) {
	if how := new(serverWatch).howLost(""); !strings.Contains(how, "evicted only the one") {
		t.Error(how)
	}
}

// A mark is renewed once it is old, or of a time to come, because a clock was set. Its number grows then. A
// value that is not a mark stays.
func TestRenewedMarks(t *testing.T) {
	client, ctx := redistest.Start(t).Client(t), context.Background()
	const old = 1000 // seconds
	now := client.Time(ctx).Val().Unix()
	for was, want := range map[string]string{
		"": "new 1 ", fmt.Sprint("ab 7 ", now-old): "ab 8 ", fmt.Sprint("ab 7 ", now+2*old): "ab 8 ", fmt.Sprint("ab 7 ", now): fmt.Sprint("ab 7 ", now), "ab": "ab",
	} {
		if err := client.Set(ctx, "mark", was, 0).Err(); err != nil {
			t.Fatal(err)
		}
		reply, err := client.Eval(ctx, markText, []string{"mark"}, "new", old).StringSlice()
		if err != nil || len(reply) != 2 || reply[0] != was || !strings.HasPrefix(reply[1], want) || client.Get(ctx, "mark").Val() != reply[1] {
			t.Errorf("%q: %q, %v; want %q", was, reply, err, want)
		}
	}
}
