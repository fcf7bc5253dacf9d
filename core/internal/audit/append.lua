-- Writes an entry into the audit stream, and removes the oldest entries.
--
-- KEYS[1]   the stream
-- KEYS[2]   only for a change of rules, which each process of a fleet reports: a sorted set of the
--           latest versions, by the time (microseconds) at which the fleet took up each
-- ARGV[1]   about how many entries to keep
-- ARGV[2]   how many versions to keep
-- ARGV[3]   the version before, or '' if the process has just started
-- ARGV[4]   the version now
-- ARGV[5]   how many arguments follow: the fields of the entry and their values
-- reply     the entry's ID; nothing if another process has reported the same change
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
if KEYS[2] then
  local before, present = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[3]) or 0), redis.call('ZSCORE', KEYS[2], ARGV[4])
  -- If the version before was taken up later than this one, the fleet returns to this one.
  if present and (ARGV[3] == '' or present + 0 >= before) then return {} end
  now = math.max(now, before + 1)
end
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', unpack(ARGV, 6, 5 + ARGV[5]))
if KEYS[2] then
  redis.call('ZADD', KEYS[2], now, ARGV[4])
  if redis.call('ZCOUNT', KEYS[2], '-inf', '+inf') > ARGV[2] + 0 then
    redis.call('ZREM', KEYS[2], redis.call('ZRANGE', KEYS[2], 0, 0)[1])
  end
end
return {id}
