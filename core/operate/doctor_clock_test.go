package operate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

// clockOff makes a server's clock seem to be off by so much.
type clockOff time.Duration

// DialHook implements redis.Hook.
func (clockOff) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (clockOff) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook.
func (off clockOff) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if reply, ok := cmd.(*redis.Cmd); ok && cmd.Name() == "time" {
			now := time.Now().Add(time.Duration(off))
			reply.SetVal([]any{fmt.Sprint(now.Unix()), fmt.Sprint(now.Nanosecond() / 1000)})
		}
		return err
	}
}

// The doctor compares the clock of the server itself with that of the machine.
func TestDoctorReadsTheServersClock(t *testing.T) {
	for off, want := range map[time.Duration]string{0: "within a second", time.Hour: "ahead of this machine's", -time.Hour: "behind this machine's"} {
		client := redistest.Start(t).Client(t)
		client.AddHook(clockOff(off))
		found := examined(t, client, patient)
		if !slices.ContainsFunc(found, func(f operate.Finding) bool { return f.Code == "clock" && strings.Contains(f.Text, want) }) {
			t.Errorf("by %v: %+v, want the clock %q", off, found, want)
		}
	}
}
