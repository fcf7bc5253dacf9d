-- TokenBucket: a bucket of burst permits that starts full and refills continuously.
--
-- A permit is divided into units such that a whole number of units comes back per tick, so nothing
-- is rounded at any rate. A call at a rate that is new to the bucket is decided as if the part for
-- that rate had been added when the state was written.
--
-- args      burst, permit (units), refill (units per tick), tick (microseconds: 1, or 1000 for
--           windows of an hour and more)
-- state     see token_bucket_state.lua
--
-- With patience (microseconds), the cost is taken at the next turn if that comes within patience,
-- and the table has the wait until then: see token_bucket_reserve.lua.
algorithms.tb3 = function(key, now, cost, burst, permit, refill, tick, debt, patience)
  local state = redis.call('GET', key)
  burst, permit, refill, tick = burst + 0, permit + 0, refill + 0, tick + 0
  local at = (now - now % tick) / tick
  -- Even if the rate was lowered a lot, no wait is longer than 71 years, which the durations of all
  -- languages can hold.
  local longest = math.floor(2 ^ 51 / tick)
  local charged, born, anchored = now % 2 ^ 51, now, nil
  -- If there is one rate and no gaps: the units used. Otherwise: the parts, the index of this
  -- rate's part, and the number of ticks until no part is in use.
  local used, bucket, parts, own = 0, nil, nil, nil
  local whole = math.huge
  if state then
    local last, unit, rate, size, before, birth
    last, used, unit, rate, size, before, birth = struct.unpack('<I7I7I6I5I5I7I7', state)
    if #state > 44 or unit ~= permit or rate ~= refill then
      bucket = bucket_states(longest)
      last, before, birth, parts = bucket.read(key, state)
    elseif last >= 2 ^ 53 or used > 2 ^ 52 or before > 2 ^ 52 or birth >= 2 ^ 53 then
      error('NOTACOUNTER ' .. key)
    end
    if last > at then
      -- The clock stepped back: the refill continues from now, and no permits are created.
      last, birth = at, math.min(birth, at * tick)
      anchored = parts and bucket.write(at, before, birth, parts)
        or struct.pack('<I7I7I6I5I5I7I7', at, used, permit, refill, size, before, birth)
    end
    if parts then
      whole = last + bucket.ticks(parts) - at
      if whole > 0 then
        own = bucket.find(parts, permit, refill) or bucket.add_part(parts, permit, refill, before)
        parts[own].burst = burst
        bucket.refill(parts, at - last)
      else
        parts, used, whole = nil, 0, math.huge
      end
    else
      used = math.max(0, used - (at - last) * refill)
    end
    if parts or used > 0 then
      charged, born = before, birth
    else
      anchored = nil -- the bucket is as good as fresh, whether the key is gone or not
    end
  end

  local function after(ticks) return ticks > 0 and (at + ticks) * tick - now or 0 end

  local left, reset, retry, lives, wait
  if parts then
    left, lives = bucket.left(parts, own, burst), after(whole)
    reset = after(math.min(whole, bucket.wait(parts, own, burst, burst, whole)))
    retry = after(math.min(whole, bucket.wait(parts, own, cost, burst, whole)))
  else
    left, reset = math.floor((burst * permit - used) / permit), after(math.ceil(used / refill))
    local missing = used + (cost - burst) * permit
    retry = missing > 0 and after(math.ceil(missing / refill)) or 0
  end
  if patience then
    -- Returns after how many ticks a number of permits fit into a bucket that holds full permits,
    -- or as many as can be counted.
    local function wait_for(permits, full)
      if parts then return bucket.wait(parts, own, permits, full, whole) end
      return math.ceil((used + permits * permit - math.min(full * permit, longest * refill, 2 ^ 52)) / refill)
    end
    wait = cost > 0 and after(wait_for(1, burst)) or 0
    retry = math.min(after(whole), math.max(0, wait - patience, after(wait_for(cost, math.huge))))
  elseif debt then
    local full = burst + debt
    local room = parts and bucket.left(parts, own, full)
      or math.floor((math.min(full * permit, longest * refill, 2 ^ 52) - used) / permit)
    cost, retry = math.max(0, math.min(cost, room)), 0
  end
  if retry > 0 or cost == 0 then
    return {retry = retry, left = left, reset = reset, anchored = anchored, lives = lives, wait = wait}
  end

  local full = charged + cost > 2 ^ 52
  -- earlier charges can no longer be given back
  if full then charged, born = now % 2 ^ 51, now end
  local position = charged + cost
  local answer = {
    retry = 0, left = left, reset = reset, cost = cost, position = position, anchored = anchored, lives = lives, wait = wait,
  }
  if parts then
    bucket.charge(parts, own, cost, charged, full)
    whole = bucket.ticks(parts)
    answer.charged, answer.charged_lives = bucket.write(at, position, born, parts), after(whole)
    answer.charged_reset = after(math.min(whole, bucket.wait(parts, own, burst, burst, whole)))
  else
    used = used + cost * permit
    answer.charged = struct.pack('<I7I7I6I5I5I7I7', at, used, permit, refill, burst, position, born)
    answer.charged_reset = after(math.ceil(used / refill))
  end
  return answer
end
