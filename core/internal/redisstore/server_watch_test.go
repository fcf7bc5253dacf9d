package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// If INFO could not be read, or was just being read, it is read again, so that no change is missed.
func TestNoChangeIsMissed(t *testing.T) {
	finds := func(t *testing.T, runID string, w *serverWatch) {
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
			w.answered(false)
		}
	}
	t.Run("after one that failed", func(t *testing.T) {
		var looks atomic.Int32
		w := &serverWatch{common: newCommon(time.Minute), readInfo: func(context.Context) (string, error) {
			if looks.Add(1) == 1 {
				return "", errors.New("a connection to the server that was there before")
			}
			return "run_id:new\r\n", nil
		}}
		finds(t, "new", w)
	})
	t.Run("during another", func(t *testing.T) {
		w := &serverWatch{common: newCommon(time.Minute)}
		reads, goesOn := make(chan struct{}, 1), make(chan struct{})
		var looks atomic.Int32
		w.readInfo = func(context.Context) (string, error) {
			if looks.Add(1) > 1 {
				return "run_id:new\r\n", nil
			}
			reads <- struct{}{}
			<-goesOn
			return "run_id:old\r\n", nil
		}
		w.answered(false)
		<-reads
		w.answered(true) // the server was restarted meanwhile
		close(goesOn)
		finds(t, "new", w)
	})
}

// A server that replies that it has no INFO is not asked for it again and again.
func TestAServerWithoutInfoIsAskedOnce(t *testing.T) {
	var looks atomic.Int32
	w := &serverWatch{common: newCommon(time.Minute), readInfo: func(context.Context) (string, error) {
		looks.Add(1)
		return "", reply("ERR unsupported command 'info'")
	}}
	for end := time.Now().Add(3 * refreshEvery); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.answered(false)
	}
	w.common.close()
	if n := looks.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
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
