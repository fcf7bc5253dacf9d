package core_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// commandHook counts the commands that a hook of a client sees.
type commandHook struct{ seen int }

func (h *commandHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *commandHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.seen++
		return next(ctx, cmd)
	}
}

func (h *commandHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.seen += len(cmds)
		return next(ctx, cmds)
	}
}

// The hooks of a client see none of the limiter's commands, whether they were added before or after.
func TestHooksSeeNoCommands(t *testing.T) {
	client, before, after := redistest.Start(t).Client(t), new(commandHook), new(commandHook)
	client.AddHook(before)
	limiter := newLimiter(t, core.Options{Redis: client})
	client.AddHook(after)
	for range 3 {
		if d, err := limiter.MustCounter("n", core.PerHour(5)).Allow(background, me); err != nil || d.Source != core.FromRedis {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	if before.seen+after.seen > 0 {
		t.Errorf("hooks saw %d and %d commands", before.seen, after.seen)
	}
	if client.Ping(background); before.seen != 1 || after.seen != 1 {
		t.Error("hooks do not see the commands of the client's owner: the test shows nothing")
	}
}
