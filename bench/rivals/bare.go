package rivals

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/accesslimit/accesslimit/bench/harness"
)

// goodScript is a token bucket (GCRA) that is nearly as short as possible and returns one number.
// It shows what a good script costs by itself. KEYS[1] is the key. ARGV holds the microseconds that
// a call uses up, the microseconds that a full bucket has room for, and the key's time to live in
// milliseconds.
const goodScript = `
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local full = call('GET', KEYS[1])
if full then full = full + 0 if full < now then full = now end else full = now end
local used = full + ARGV[1] - now
local left = ARGV[2] - used
if left < 0 then return left end
call('SET', KEYS[1], string.format('%d', now + used), 'PX', ARGV[3])
return left
`

// goodArgs returns the script's ARGV.
func goodArgs(l Limit) []string {
	permit := l.Permit.Microseconds()
	room := permit * int64(l.Max)
	return []string{strconv.FormatInt(permit, 10), strconv.FormatInt(room, 10), strconv.FormatInt(room/1000+1, 10)}
}

// bare calls the script through go-redis, without a library. Every limiter on go-redis costs at
// least this much.
var bare = Redis{Name: Bare, Costs: true, Open: func(p Place, l Limit) (Opened, error) {
	client := p.client()
	return Opened{Allow: bareOn(client, l), Close: func() { _ = client.Close() }}, nil
}}

func bareOn(client redis.Cmdable, l Limit) harness.AllowFunc {
	script := redis.NewScript(goodScript)
	var args []any
	for _, arg := range goodArgs(l) {
		args = append(args, arg)
	}
	return func(ctx context.Context, subject string) (allowed bool, err error) {
		left, err := script.Run(ctx, client, []string{subject}, args...).Int64()
		return err == nil && left >= 0, err
	}
}
