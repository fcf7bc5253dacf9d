package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// UserWith adds rights, such as "~*" and "+@all", to those of one user of the server, and returns a
// client that logs in as this user.
func (r *Server) UserWith(t testing.TB, rights ...any) *redis.Client {
	t.Helper()
	line := append([]any{"acl", "setuser", "limiter", "on", ">secret"}, rights...)
	if err := r.Client(t).Do(t.Context(), line...).Err(); err != nil {
		t.Fatal(err)
	}
	return r.Client(t, func(o *redis.Options) { o.Username, o.Password = "limiter", "secret" })
}
