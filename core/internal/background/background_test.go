package background_test

import (
	"context"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core/internal/background"
)

func inGoroutine(do func()) { go do() }

// A task goes on when the context of the act has ended, and its act does not wait for it then.
func TestATaskOutlastsTheContext(t *testing.T) {
	r := background.Runner{Start: inGoroutine, Patience: time.Hour}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	goOn, done := make(chan struct{}), make(chan struct{})
	var ended error
	r.Run(ctx, done, func(ctx context.Context) {
		<-goOn
		ended = ctx.Err()
	})
	r.Await(ctx, time.Now(), done)
	close(goOn)
	<-done
	if ended != nil {
		t.Errorf("the task's context has ended: %v", ended)
	}
}

// Await returns when the task is done, or when the patience is over since the act began.
func TestAwait(t *testing.T) {
	done := make(chan struct{})
	r := background.Runner{Start: inGoroutine, Patience: time.Hour}
	r.Await(context.Background(), time.Now().Add(-time.Hour), done)
	r.Run(context.Background(), done, func(context.Context) {})
	r.Await(context.Background(), time.Now(), done)
	select {
	case <-done:
	default:
		t.Error("Await did not wait")
	}
}

// The channel of a task that panics is closed too, so that nobody waits for it.
func TestATaskThatPanicsIsDone(t *testing.T) {
	r := background.Runner{Patience: time.Hour, Start: func(do func()) {
		defer func() { _ = recover() }()
		do()
	}}
	done := make(chan struct{})
	r.Run(context.Background(), done, func(context.Context) { panic("broken") })
	<-done
}
