-- Adds a loss that a process has noticed to the list, and removes the old ones.
--
-- KEYS[1]  a sorted set of losses by the time (microseconds) at which each was noticed first:
--          "TIME ID TEXT"
-- ARGV[1]  how long to keep one, in microseconds
-- ARGV[2]  how many to keep
-- ARGV[3]  how old one may be to be the same as this one, in microseconds
-- ARGV[4]  the ID, the same in all processes that notice the loss
-- ARGV[5]  the text
-- reply    an empty list
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[1])
local all = redis.call('ZRANGE', KEYS[1], 0, -1)
for _, member in ipairs(all) do
  local at, id = string.match(member, '^(%d+) (%S+) ')
  if id == ARGV[4] and now - at < ARGV[3] + 0 then return {} end
end
if #all >= ARGV[2] + 0 then
  redis.call('ZREM', KEYS[1], all[1])
end
local at = string.format('%.0f', now)
redis.call('ZADD', KEYS[1], at, at .. ' ' .. ARGV[4] .. ' ' .. ARGV[5])
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', (now + ARGV[1]) / 1000))
return {}
