-- TokenBucket: a bucket of burst permits that starts full and refills continuously.
--
-- A permit is divided into so many units that a whole number of them comes back per tick: nothing
-- rounds, whatever the rate. A rate that is new to the bucket begins with the use of the fullest
-- part.
--
-- args      burst, permit (units), refill (units per tick), tick (microseconds: 1, or 1000 for
--           windows of an hour and more)
-- state     see token_bucket_state.lua
--
-- With patience (microseconds) the cost is taken at the next turn, if that comes so soon, and the
-- table has the wait until then: see token_bucket_reserve.lua.
algorithms.tb2 = function(key, now, cost, burst, permit, refill, tick, patience)
  local state = redis.call('GET', key)
  burst, permit, refill, tick = burst + 0, permit + 0, refill + 0, tick + 0
  local at = (now - now % tick) / tick
  -- If the rate was lowered far, no wait is longer than 71 years, which the durations of all
  -- languages can hold.
  local longest = math.floor(2 ^ 51 / tick)
  local most = math.min(2 ^ 52, longest * refill)
  local charged, born, anchored = now % 2 ^ 51, now, nil
  -- What is used, in units of this rate; and after how long nothing of any part is used.
  local used, whole = 0, math.huge
  local bucket, parts, own, gaps -- nil: what is used is one number, at this rate
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
      -- The clock stepped back: the refill goes on from now, with nothing minted.
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
      anchored = nil -- it is as good as fresh, whether the key is gone or not
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
  local lives = parts and (at + bucket.ticks(parts)) * tick - now or nil
  if retry > 0 or cost == 0 then
    return {retry = math.min(whole, retry), left = left, reset = reset, anchored = anchored, lives = lives, wait = wait}
  end

  local full = charged + cost > 2 ^ 52
  -- What was charged before can no longer be given back.
  if full then charged, born = now % 2 ^ 51, now end
  local position = charged + cost
  local answer = {
    retry = 0, left = left, reset = reset, position = position, charged_reset = after(needed),
    charged = not parts and struct.pack('<I7I7I7I7I7I7I1', at, needed, permit, refill, position, born, 0) or nil,
  }
  if anchored then answer.anchored = anchored end
  if wait then answer.wait = wait end
  if not parts then return answer end

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
  answer.charged, answer.lives = bucket.write(at, position, born, parts), lives
  answer.charged_lives = (at + bucket.ticks(parts)) * tick - now
  return answer
end
