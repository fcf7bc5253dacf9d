// Package scriptclock lets tests set the time for the production scripts, on every supported
// version of Redis.
package scriptclock

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	// Lines are the lines in which every script reads Redis's clock.
	Lines    = "local clock = redis.call('TIME')\nlocal now = clock[1] * 1000000 + clock[2]\n"
	argument = "local now = ARGV[#ARGV] + 0\n"
	// expireTime defines PEXPIRETIME, which Redis 6.2 does not have. There it adds PTTL's result to
	// the time, and asks again if a new millisecond began in between.
	expireTime = `local function expire_time(key)
  local at = redis.pcall('PEXPIRETIME', key)
  if type(at) == 'number' then return at end
  local function milliseconds()
    local clock = redis.call('TIME')
    return clock[1] * 1000 + math.floor(clock[2] / 1000)
  end
  local before, left
  repeat
    before, left = milliseconds(), redis.call('PTTL', key)
  until milliseconds() == before
  return left < 0 and left or before + left
end
`
	expire = `for i = 1, #KEYS do
  local expires = expire_time(KEYS[i])
  if expires > 0 and expires * 1000 <= now then redis.call('DEL', KEYS[i]) end
end
`
)

// TakeTime returns the text of a production script, changed to take the time, in microseconds, as
// its last argument.
func TakeTime(text string) (string, error) { return replace(text, argument) }

// TakeTimeAndExpire is TakeTime for a script that first deletes each of its keys that has expired
// by the given time, as the server would by its own clock.
func TakeTimeAndExpire(text string) (string, error) { return replace(text, argument+expireTime+expire) }

func replace(text, clock string) (string, error) {
	if strings.Count(text, Lines) != 1 {
		return "", fmt.Errorf("the script does not read its clock once, in these two lines:\n%s", Lines)
	}
	return strings.Replace(text, Lines, clock, 1), nil
}

// ExpireTime returns a command for when a key expires, in milliseconds since the epoch: -1 for
// never, -2 if there is no such key.
func ExpireTime(ctx context.Context, server redis.Scripter, key string) *redis.Cmd {
	return server.Eval(ctx, expireTime+"return expire_time(KEYS[1])", []string{key})
}
