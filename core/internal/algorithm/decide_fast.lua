-- Decides equal calls that were made together on one counter, first come first served. It charges
-- as many as fit.
--
-- KEYS[1]   the counter
-- ARGV[1]   the args of the algorithm's fast function, little-endian: six I7
-- reply     the fast function's. -1: the case is uncommon and nothing was done, so call
--           decide_equal.lua
-- keeps     what decide.lua keeps
--
-- A fast function takes the counter's state (false: there is none), now (microseconds since the
-- epoch), and its args. The first two args are the cost of all calls together and of one call. It
-- changes nothing and raises no error, whatever the state is. It returns -1 if the case is
-- uncommon. Otherwise it returns the reply and, if any call fits, three more values: how many fit,
-- the state to write, and when that state expires (milliseconds since the epoch, as text).
-- Formatted by string.format, the time makes PXAT (Redis 6.2) as fast as PX (redis-benchmark -c 8
-- -P 64). Leaving the conversion to Redis takes 0.25 us more.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local reply, _, written, expires = decide(redis.call('GET', KEYS[1]), now, struct.unpack('<I7I7I7I7I7I7', ARGV[1]))
if written then redis.call('SET', KEYS[1], written, 'PXAT', expires) end
return reply
