package main

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/bench/internal/harness"
	"github.com/accesslimit/accesslimit/bench/rivals"
)

// copier copies the first key to others, with its time to live.
var copier = redis.NewScript(`
local head, tail = string.match(KEYS[1], '^(.*)' .. ARGV[1] .. '(.*)$')
for i = ARGV[2] + 0, ARGV[3] - 1 do
	redis.call('COPY', KEYS[1], head .. string.format('%012d', i) .. tail)
end
return 0`)

// loadStates has the rival make one key in an empty database, and copies the key n-1 times. This
// way all keys exist almost at once, as the rival writes them, and none has expired when it is
// called.
func (b *bench) loadStates(rival string, limit rivals.Limit, place rivals.Place, n int) error {
	db := b.server.DB(place.DB)
	defer db.Close()
	first := harness.NewKeys("key", 1).At(0)
	if err := makeKey(rival, limit, place, first); err != nil {
		return err
	}
	names, err := db.Keys(background, "*"+first+"*").Result()
	if err == nil && len(names) != 1 {
		err = fmt.Errorf("%s calls the keys of %s %q", rival, first, names)
	}
	if err != nil {
		return err
	}
	const atOnce = 50_000 // the server does other work between the parts
	digits := first[len(first)-harness.Digits:]
	for i := 1; i < n; i += atOnce {
		if err := copier.Run(background, db, names, digits, i, min(i+atOnce, n)).Err(); err != nil {
			return err
		}
	}
	return nil
}

// makeKey has the rival count one call.
func makeKey(rival string, limit rivals.Limit, place rivals.Place, subject string) error {
	limiter, err := rivals.Find(rival).Open(place, limit)
	if err != nil {
		return err
	}
	defer limiter.Close()
	return callOnce(limiter.Allow, subject)
}
