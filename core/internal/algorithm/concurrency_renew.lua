-- Renews the slots of a call in flight. A slot that was lost meanwhile is taken again, even above
-- the limit, because its call is still in flight.
--
-- KEYS[i]   the counters of Concurrency, all in one cluster slot
-- ARGV[1]   the holder
-- ARGV      then the window of each counter (microseconds)
-- reply     a list of one: how many slots were renewed
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
for i = 1, #KEYS do
  local newest = redis.call('ZREVRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2]
  -- The check of concurrency.lua, before anything is written: all slots are renewed, or none.
  if newest and (newest + 0 < 2 ^ 50 or newest + 0 >= 2 ^ 53) then error('NOTACOUNTER ' .. KEYS[i]) end
end
for i = 1, #KEYS do
  local window = ARGV[i + 1] + 0
  local newest = (redis.call('ZREVRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2] or now) + 0
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', math.max(newest, now) - window)
  if newest > now then
    -- The clock stepped back: every slot that is held counts as renewed now.
    for _, of in ipairs(redis.call('ZRANGE', KEYS[i], 0, -1)) do redis.call('ZADD', KEYS[i], now, of) end
  end
  redis.call('ZADD', KEYS[i], now, ARGV[1])
  redis.call('PEXPIREAT', KEYS[i], math.floor((now + window) / 1000) + 1)
end
return {#KEYS}
