package redisstore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/accesslimit/accesslimit/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// An error of Redis is cut off where it becomes a store failure, however long it is.
func TestErrorsOfAServerAreCutOff(t *testing.T) {
	server, p := redistest.Start(t), startProxy(t)
	client := server.Client(t, func(o *redis.Options) { o.Dialer = p.dial })
	s := newStore(t, client, patient)
	c := counter("subject", daily(t, 100))
	s.mustTake(t, c)
	for _, reply := range []string{"-ERR " + strings.Repeat("ä", 1<<19) + "\r\n", "!!" + strings.Repeat("x", 1<<20) + "\r\n"} {
		p.fault.Store(&fault{name: "long", reply: reply})
		err := firstError(s.take(context.Background(), c))
		if err == nil || len(err.Error()) > 1100 || !strings.Contains(err.Error(), "bytes)") {
			t.Errorf("%.200v", err)
		}
	}
}
