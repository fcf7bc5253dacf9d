-- Enters a pause into the list of its rule, and removes some that have ended.
--
-- KEYS[1]   a sorted set of the keys of a rule's calls, by the end of their pauses (microseconds)
-- ARGV      when the pause ends (microseconds); the key of its calls; the largest number of keys:
--           beyond that, those whose pauses end first are removed; how long a key stays after its
--           pause has ended (microseconds), because the clocks of the servers of a cluster differ
-- reply     empty
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local kept = ARGV[4] + 0
redis.call('ZADD', KEYS[1], 'GT', ARGV[1], ARGV[2])
local gone = redis.call('ZRANGE', KEYS[1], '-inf', now - kept, 'BYSCORE', 'LIMIT', 0, 20)
if #gone == 0 and redis.call('ZCOUNT', KEYS[1], '-inf', '+inf') > ARGV[3] + 0 then gone = redis.call('ZRANGE', KEYS[1], 0, 0) end
if #gone > 0 then redis.call('ZREM', KEYS[1], unpack(gone)) end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
if last then redis.call('PEXPIREAT', KEYS[1], math.floor((last + kept) / 1000) + 1) end
return {}
