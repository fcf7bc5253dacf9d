-- TokenBucket does not give back permits that have come back by themselves since. Nor, if the
-- bucket is overdrawn, does it give back permits behind which others wait, because those waits were
-- already announced. When a charge is given back in several steps, its newest permits go first.
algorithms.tb2 = function(key, now, charge, burst, permit, refill, tick)
  local state = redis.call('GET', key)
  if not state then return end
  burst, permit, refill, tick = burst + 0, permit + 0, refill + 0, tick + 0
  local cost, position = charge.cost, charge.position - charge.given
  local at, bucket = math.floor(now / tick), bucket_states()
  local last, charged, born, parts = bucket.read(key, state)
  if last > at then born = math.min(born, at * tick) end
  if charge.at < born or position > charged or not bucket.refill(parts, math.max(0, at - last)) then return end

  local changed = false
  for _, part in ipairs(parts) do
    local held, behind, from = cost, charged - position, position - cost
    for _, gap in ipairs(part.gaps) do
      held = held - math.max(0, math.min(gap[2], position) - math.max(gap[1], position - cost))
      behind = behind - math.max(0, gap[2] - math.max(gap[1], position))
    end
    if part.permit == permit and part.refill == refill and part.used > burst * permit then
      held = held - behind
      from = position - held
    end
    local back = math.min(part.used - behind * part.permit, held * part.permit)
    if back > 0 then
      part.used, changed = part.used - back, true
      bucket.add_gap(part, charged, from, position)
    end
  end
  if not changed then return end
  return {change = bucket.write(at, charged, born, parts), lives = (bucket.ticks(parts) + 1) * tick}
end
