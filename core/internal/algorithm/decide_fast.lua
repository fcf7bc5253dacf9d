-- Decides over calls of one cost that were made together, on one counter, first come first served:
-- as many are charged as fit.
--
-- KEYS[1]   the counter
-- ARGV[1]   the args of the algorithm's fast function, little-endian: six I7
-- reply     as the fast function's. -1: the case is uncommon, nothing was done, and
--           decide_equal.lua is to be asked
-- keeps     what decide.lua keeps
--
-- A fast function takes the counter's state, or false if there is none, now (microseconds since the
-- epoch), and its args, of which the first two are what all calls and one call cost. It changes
-- nothing and raises no error, whatever the state is. It returns -1 if the case is uncommon.
-- Otherwise it returns the reply and, if any call fits: how many do, the state to write, and when
-- that is to expire (milliseconds since the epoch, as text).
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local reply, _, written, expires = decide(redis.call('GET', KEYS[1]), now, struct.unpack('<I7I7I7I7I7I7', ARGV[1]))
if written then redis.call('SET', KEYS[1], written, 'PXAT', expires) end
return reply
