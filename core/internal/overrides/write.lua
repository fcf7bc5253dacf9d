-- Writes an override, but only soon after its subject was entered into the index. Later the entry
-- may be gone, because entries without an override are removed after a while.
--
-- KEYS[1]   the override
-- ARGV[1]   when the subject was entered (microseconds)
-- ARGV[2]   how long the entry can be relied on (microseconds)
-- ARGV[3]   the override
-- ARGV[4]   when it ends (microseconds), or 0 if it does not
-- reply     1 and the override before, if there was one; or 0 alone if this came too late
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
if now - ARGV[1] > ARGV[2] + 0 then return {0} end
local before = redis.call('GET', KEYS[1])
local ends = ARGV[4] + 0
if ends > 0 then
  redis.call('SET', KEYS[1], ARGV[3], 'PXAT', math.floor(ends / 1000) + 1)
else
  redis.call('SET', KEYS[1], ARGV[3])
end
return {1, before or nil}
