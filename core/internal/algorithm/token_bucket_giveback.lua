-- TokenBucket does not give back permits that have already come back by themselves. Those that were
-- charged first come back first, so the oldest permits in use are given back. If later charges were given
-- back before, that may be fewer than still count.
--
-- If the bucket is overdrawn, callers wait for permits behind others, and were told how long. So a charge
-- comes back only whole, and only if nothing was charged behind it. Then its permits are taken from the
-- end.
--
-- lost      in the table: how many whole permits may still have counted, but were not given back. For a
--           turn these are the permits that others wait behind
algorithms.tb4 = function(key, now, charge, burst, _, _, tick)
  burst, tick = burst + 0, tick + 0
  local at, used, _, charged, born, _, permit, refill = read_bucket(key, now, tick)
  local behind = charged - charge.position
  if used == 0 or charge.at < born or behind < 0 then return end

  local asked, full = charge.cost * permit, math.min(burst * permit, 2 ^ 52)
  local back = math.max(0, math.min(asked, used - behind * permit))
  -- When it was charged, at most the burst was in use, unless there was debt.
  local most = math.min(asked, used, full - math.max(0, at - math.floor(charge.at / tick)) * refill)
  local lost = math.floor(math.max(0, most - back) / permit)
  if used > full and not charge.in_debt then
    if behind > 0 or not charge.whole then return {lost = math.ceil(back / permit)} end
    charged = charged - charge.cost
  end
  if back == 0 then return {lost = lost} end
  used = used - back
  if used == 0 then return {change = function() redis.call('DEL', key) end, lives = 0, lost = lost} end
  local lives = (at + math.ceil(used / refill)) * tick - now
  return {change = write_bucket(at, used, permit, refill, charged, born), lives = lives, lost = lost}
end
