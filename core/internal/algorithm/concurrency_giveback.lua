-- Concurrency gives back the slot of a holder.
algorithms.cc1 = function(key, now, _, _, window, holder)
  if not redis.call('ZSCORE', key, holder) then return end
  local last = redis.call('ZREVRANGE', key, 0, 1, 'WITHSCORES')
  local newest = last[2] + 0
  if newest < 2 ^ 50 or newest >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end -- as in concurrency.lua
  local renewed = last[1] == holder and last[4] or last[2] -- the newest of the others, if there are any
  local lives = renewed and math.max(0, math.min(renewed + window - now, window + 0)) or 0
  return {change = function() redis.call('ZREM', key, holder) end, lives = lives}
end
