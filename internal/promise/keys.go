package promise

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/internal/scriptclock"
)

// keyState is what a server holds under a key.
type keyState struct {
	dump    string    // the value, as DUMP writes it
	expires time.Time // the zero Time: never
}

// keysOf returns the keys with this prefix on all of these servers, except the lists of refused
// subjects, which are written some time after the calls, and the marks of servers, which stay.
func keysOf(servers []*redis.Client, prefix string) (map[string]keyState, error) {
	ctx, all := context.Background(), make(map[string]keyState)
	for _, server := range servers {
		found := server.Scan(ctx, 0, prefix+":*", 1000).Iterator()
		for found.Next(ctx) {
			key := found.Val()
			if strings.HasPrefix(key, prefix+":{%top}:") || strings.HasPrefix(key, prefix+":{%mark") {
				continue
			}
			dump, err := server.Dump(ctx, key).Result()
			if err == redis.Nil { // it has died meanwhile
				continue
			}
			at, err2 := scriptclock.ExpireTime(ctx, server, key).Int64()
			if err != nil || err2 != nil {
				return nil, firstOf(err, err2)
			}
			state := keyState{dump: dump}
			switch {
			case at == -2: // it has died since
				continue
			case at > 0:
				state.expires = time.UnixMilli(at)
			}
			all[key] = state
		}
		if err := found.Err(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// keys is keysOf for use within a bubble. In process there are no keys.
func (l *lab) keys(t testing.TB, prefix string) (all map[string]keyState) {
	t.Helper()
	if l.client == nil {
		return nil
	}
	var err error
	l.outside.do(func() { all, err = keysOf(l.servers, prefix) })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// persist removes the time to live of every key with this prefix.
func (l *lab) persist(t testing.TB, prefix string) {
	t.Helper()
	for key := range l.keys(t, prefix) {
		l.outside.do(func() {
			for _, server := range l.servers {
				// This is an error if the cluster keeps the key on another server.
				server.Persist(context.Background(), key)
			}
		})
	}
	for key, state := range l.keys(t, prefix) {
		if !state.expires.IsZero() {
			t.Fatalf("%s has not lost its time to live", key)
		}
	}
}
