-- Concurrency gives back the slot of a holder.
algorithms.cc1 = function(key, _, _, _, window, holder)
  if not redis.call('ZSCORE', key, holder) then return end
  return {change = function() redis.call('ZREM', key, holder) end, lives = window}
end
