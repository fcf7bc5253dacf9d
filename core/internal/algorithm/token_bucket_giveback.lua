-- TokenBucket does not give back permits that have already come back by themselves. If the bucket
-- is overdrawn, it also does not give back permits that come before the reservations of others,
-- because those callers were already told how long to wait. Their number follows from the position
-- of the charge, so the state needs no list of reservations. When a charge is given back in several
-- steps, its newest permits go first.
--
-- lost      in the table: how many permits may still have counted, but were not given back, because
--           the places of the permits around them are not known (see kept in
--           token_bucket_state.lua), or because they come before what may be debt. For a turn these
--           are the permits that others wait behind

-- Gives permits back to a part. The last of their positions is newest. overdrawn says that others
-- wait for permits of the part; own says that the charge was made at the part's rate. Returns
-- whether the part changes, and how many permits were lost.
local function give_back_to_part(bucket, part, cost, newest, charged, overdrawn, own)
  local held, behind, unsure, known, inside = cost, charged - newest, 0, true, false
  for i = 1, #part.gaps, 2 do
    local after, upto = part.gaps[i], part.gaps[i + 1]
    local common = math.max(0, math.min(upto, newest) - math.max(after, newest - cost))
    local newer = math.max(0, upto - math.max(after, newest))
    if i > 1 or part.kept == 0 then
      held, behind = held - common, behind - newer
    else
      local absent = upto - after - part.kept
      local sure = math.min(newer, math.max(0, absent - math.max(0, newest - cost - after)))
      behind, unsure, inside = behind - sure, math.min(newer, absent) - sure, common > 0
      known = not inside or own and after > 0 and common == cost
      if inside then held = math.min(held, part.kept) end
    end
  end

  -- Returns how many units of some permits come back if behind permits were charged later.
  local function comes_back(permits, behind)
    return math.max(0, math.min(part.used - behind * part.permit, permits * part.permit))
  end
  local most = comes_back(held, behind - unsure)
  if overdrawn then held = held - behind end
  local back = known and comes_back(held, behind) or 0
  local lost = math.ceil((most - back) / part.permit)
  if back == 0 then return false, lost end
  part.used = part.used - back
  if own and part.own < 2 ^ 52 then part.own = math.max(0, part.own - held) end
  if inside then
    part.kept = part.kept - held
  else
    bucket.add_gap(part, charged, newest - (overdrawn and held or cost), newest)
  end
  return true, lost
end

algorithms.tb3 = function(key, now, charge, burst, permit, refill, tick)
  local state = redis.call('GET', key)
  if not state then return end
  permit, refill, tick = permit + 0, refill + 0, tick + 0
  local newest = charge.position - charge.given
  local at, bucket = math.floor(now / tick), bucket_states(math.floor(2 ^ 51 / tick))
  local last, charged, born, parts = bucket.read(key, state)
  if last > at then born = math.min(born, at * tick) end
  if charge.at < born or newest > charged then return end
  bucket.refill(parts, math.max(0, at - last))

  local changed, lost = false, 0
  for i = #parts, 1, -1 do -- one may be removed
    local part = parts[i]
    local biggest, own = 0, part.permit == permit and part.refill == refill
    for j = 1, i do biggest = math.max(biggest, parts[j].burst) end
    local overdrawn = part.used > biggest * part.permit and not charge.in_debt
    local gives, loses = give_back_to_part(bucket, part, charge.cost, newest, charged, overdrawn, own)
    changed = changed or gives
    if part.refill / part.permit >= refill / permit then lost = math.max(lost, loses) end
    if part.own == 0 then table.remove(parts, i) end
  end
  if not changed then return {lost = lost} end
  local answer = {lives = (bucket.ticks(parts) + 1) * tick, lost = lost}
  if bucket.ticks(parts) > 0 then
    answer.change = bucket.write(at, charged, born, parts)
  else
    answer.change = function() redis.call('DEL', key) end
  end
  return answer
end
