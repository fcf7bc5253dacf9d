-- Concurrency gives back the slot of a holder.
algorithms.cc1 = function(key, now, _, _, window, holder)
  if not redis.call('ZSCORE', key, holder) then return end
  local last = redis.call('ZREVRANGE', key, 0, 1, 'WITHSCORES')
  local renewed = last[1] == holder and last[4] or last[2] -- the newest of the others
  local lives = renewed and math.max(0, renewed + window - now) or 0
  return {change = function() redis.call('ZREM', key, holder) end, lives = lives}
end
