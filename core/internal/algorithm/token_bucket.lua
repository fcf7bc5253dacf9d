-- TokenBucket: a bucket of burst permits that starts full and refills continuously.
--
-- A permit consists of so many units that a whole number of them comes back per tick. So nothing is
-- rounded, whatever the rate. A rate that is new to the bucket begins with as much used as the rate
-- with the most.
--
-- args      burst, permit (units), refill (units per tick), tick (microseconds: 1, or 1000 for
--           windows of an hour or more)
-- state     see token_bucket_state.lua
--
-- With patience (microseconds), the cost is taken if the next turn comes within it: see
-- reserve.lua.
algorithms.tb2 = function(key, now, cost, burst, permit, refill, tick, patience)
  local state = redis.call('GET', key)
  burst, permit, refill, tick = burst + 0, permit + 0, refill + 0, tick + 0
  local at = (now - now % tick) / tick
  -- Nobody waits longer than 71 years, however far a rate is lowered: the durations of every
  -- language can hold that.
  local longest = math.floor(2 ^ 51 / tick)
  local most = math.min(2 ^ 52, longest * refill)
  local charged, born, anchored = now % 2 ^ 51, now, nil
  local used, whole = 0, math.huge -- units used at this rate; when all are back at other rates
  local bucket, parts, own, gaps -- all nil if the bucket has one part, of this rate
  if state then
    local last, before, birth, unit, rate, count
    last, used, unit, rate, before, birth, count = struct.unpack('<I7I7I7I7I7I7I1', state)
    if #state > 43 or unit ~= permit or rate ~= refill or count > 0 then
      bucket = bucket_states()
      last, before, birth, parts = bucket.read(key, state)
    elseif last >= 2 ^ 53 or used > 2 ^ 52 or before > 2 ^ 52 or birth >= 2 ^ 53 then
      error('NOTACOUNTER ' .. key)
    end
    if last > at then
      -- The clock stepped back: the refill goes on from now. No permits are created.
      last, birth = at, math.min(birth, at * tick)
      anchored = parts and bucket.write(at, before, birth, parts)
        or struct.pack('<I7I7I7I7I7I7I1', at, used, permit, refill, before, birth, 0)
    end
    if parts then
      own = bucket.find(parts, permit, refill)
      if not own then used, gaps = bucket.fullest(parts, permit, most) end
      if bucket.refill(parts, at - last) then
        if own then
          used = parts[own].used
        else
          used, whole = math.max(0, used - (at - last) * refill), (at + bucket.ticks(parts)) * tick - now
        end
      else
        parts, used = nil, 0
      end
    else
      used = math.max(0, used - (at - last) * refill)
    end
    if parts or used > 0 then
      charged, born = before, birth
    else
      anchored = nil -- nothing is used, so the state equals a fresh one
    end
  end

  local function after(units) return (at + math.ceil(units / refill)) * tick - now end

  local left = math.floor((burst * permit - used) / permit)
  local reset = used > 0 and math.min(whole, after(used)) or 0
  local needed = used + cost * permit
  local retry, wait = 0, nil
  if not patience then
    if needed > burst * permit then retry = after(needed - burst * permit) end
  else
    wait = 0
    if cost > 0 and used + permit > burst * permit then wait = after(used + permit - burst * permit) end
    retry = math.max(0, wait - patience)
    if needed > most then retry = math.max(retry, after(needed - most)) end
  end
  local lives = parts and (at + bucket.ticks(parts)) * tick - now
  if retry > 0 or cost == 0 then return math.min(whole, retry), left, reset, nil, nil, nil, anchored, wait, nil, lives end

  local full = charged + cost > 2 ^ 52
  if full then charged, born = now % 2 ^ 51, now end -- ends the refunds of earlier charges
  local position, charge = charged + cost, nil
  if not parts then
    charge = struct.pack('<I7I7I7I7I7I7I1', at, needed, permit, refill, position, born, 0)
    return 0, left, reset, after(needed), charge, position, anchored, wait
  end
  if not own then
    own = bucket.add_part(parts, {used = used, permit = permit, refill = refill, gaps = gaps}, charged, longest)
  end
  for i, part in ipairs(parts) do
    if full then part.gaps = {} end
    if i >= own then
      part.used = math.min(part.used + cost * part.permit, 2 ^ 52, longest * part.refill)
    elseif part.used > 0 then
      bucket.add_gap(part, position, charged, position)
    end
  end
  charge = bucket.write(at, position, born, parts)
  return 0, left, reset, after(needed), charge, position, anchored, wait, nil, lives, (at + bucket.ticks(parts)) * tick - now
end
