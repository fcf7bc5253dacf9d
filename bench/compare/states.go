package main

import (
	"fmt"
	"strings"

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

// loadStates has the rival make one key on an empty server, copies it n-1 times, and returns the
// bytes of a key in the server's memory. This way all keys exist almost at once, in the form
// that the rival writes, and none has expired when it is called.
func (b *bench) loadStates(rival string, limit rivals.Limit, n int) (bytes float64, err error) {
	if err := b.server.Flush(); err != nil {
		return 0, err
	}
	empty, err := b.server.Memory()
	if err != nil {
		return 0, err
	}
	first := harness.NewKeys("key", 1).At(0)
	name, err := b.makeKey(rival, limit, first)
	if err != nil {
		return 0, err
	}
	const atOnce = 50_000 // the server does other work between the parts
	for i := 1; i < n; i += atOnce {
		digits := first[len(first)-harness.Digits:]
		if err := copier.Run(background, b.server.Client(), []string{name}, digits, i, min(i+atOnce, n)).Err(); err != nil {
			return 0, err
		}
	}
	full, err := b.server.Memory()
	return float64(full-empty) / float64(n), err
}

// makeKey has the rival count one call on an empty server, and returns the name of its key.
func (b *bench) makeKey(rival string, limit rivals.Limit, subject string) (string, error) {
	limiter, err := rivals.Find(rival).Open(b.place(), limit)
	if err != nil {
		return "", err
	}
	defer limiter.Close()
	if err := callOnce(limiter.Allow, subject); err != nil {
		return "", err
	}
	names, err := b.server.Client().Keys(background, "*").Result()
	if err == nil && (len(names) != 1 || !strings.Contains(names[0], subject)) {
		err = fmt.Errorf("%s calls the keys of %s %q", rival, subject, names)
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}
