-- Concurrency gives back the slot of a holder.
algorithms.cc1 = function(key, now, _, _, window, holder)
  if not redis.call('ZSCORE', key, holder) then return end
  local last = redis.call('ZREVRANGE', key, 0, 1, 'WITHSCORES')
  local newest = last[2] + 0
  if newest < 2 ^ 50 or newest >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end -- as in concurrency.lua
  if last[1] == holder then newest = (last[4] or newest) + 0 end -- without the holder; alone, the key goes with it
  local lives = math.max(0, math.min(newest + window - now, window + 0))
  return {change = function() redis.call('ZREM', key, holder) end, lives = lives}
end
