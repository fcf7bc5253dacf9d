package redisstore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/redistest"
)

// What a server says against a connection reaches every call that was to go over it, those that were to go together, too.
func TestConnectionsRefused(t *testing.T) {
	for name, refused := range map[string]struct {
		change func(*redis.Options)
		says   string
	}{
		"password": {func(o *redis.Options) { o.Password = "wrong" }, "WRONGPASS"},
		"database": {func(o *redis.Options) { o.Password, o.DB = "secret", 16 }, "DB index is out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			client := redistest.Start(t, "--requirepass", "secret").Client(t, refused.change)
			s, c := newStore(t, client, patient), counter(t.Name(), daily(t, 1000))
			together(callers, func(int) {
				for range 10 {
					if v := s.take(context.Background(), c)[0]; v.Err == nil || !strings.Contains(v.Err.Error(), refused.says) {
						t.Errorf("%+v, want an error that says %s", v, refused.says)
					}
				}
			})
		})
	}
}
