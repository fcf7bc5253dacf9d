-- TokenBucket: a bucket of burst permits that starts full and refills continuously.
--
-- A permit is divided into so many units that a whole number of them comes back per tick: nothing rounds, whatever the rate.
--
-- args      burst, permit (units), refill (units per tick), tick (microseconds: 1, or 1000 for windows of an hour and more)
-- state     a string, little-endian: I7 last tick, I7 units used and not yet refilled, I7 units per permit and I7 units refilled
--           per tick when that was written
-- keeps     units used stay below 2^52, so every sum here is exact in a double
--
-- With patience (microseconds) the cost is taken at the next turn, if that comes so soon: see reserve.lua.
algorithms.tb1 = function(key, now, cost, burst, permit, refill, tick, patience)
  local state = redis.call('GET', key)
  burst, permit, refill, tick = burst + 0, permit + 0, refill + 0, tick + 0
  local at = (now - now % tick) / tick
  -- A rate that was lowered far leaves nobody waiting longer than 71 years, which every language's durations can hold.
  local most = math.min(2 ^ 52, math.floor(2 ^ 51 / tick) * refill)
  local used, anchored = 0, nil
  local whole = math.huge -- until all has come back at the rate that it was used at, which may be another by now
  if state then
    local last, unit, rate
    last, used, unit, rate = struct.unpack('<I7I7I7I7', state)
    if #state ~= 28 or last >= 2 ^ 53 or used > 2 ^ 52 or unit == 0 or rate == 0 then error('NOTACOUNTER ' .. key) end
    -- When that is over, all has come back for everybody, whether the key is gone or not.
    if last <= at and used > 0 then whole = (last + math.ceil(used / rate)) * tick - now end
    if whole <= 0 then used, whole = 0, math.huge end
    if unit ~= permit then
      -- The rate was changed: what was used stays used, counted in the new units, the last fraction rounded up.
      local whole = math.floor(used / unit)
      used = whole * permit + math.min(permit, math.ceil((used - whole * unit) * permit / unit))
    end
    used = math.min(used, most)
    if last > at then
      -- The clock stepped back: the refill goes on from now, with nothing minted.
      anchored = struct.pack('<I7I7I7I7', at, used, permit, refill)
    else
      used = math.max(0, used - (at - last) * refill)
    end
  end

  local function after(units)
    return (at + math.ceil(units / refill)) * tick - now
  end

  local left = math.floor((burst * permit - used) / permit)
  local reset = used > 0 and math.min(whole, after(used)) or 0
  local needed = used + cost * permit
  local retry, wait = 0, 0
  if not patience then
    if needed > burst * permit then retry = after(needed - burst * permit) end
  else
    if cost > 0 and used + permit > burst * permit then wait = after(used + permit - burst * permit) end
    retry = math.max(0, wait - patience)
    if needed > most then retry = math.max(retry, after(needed - most)) end
  end
  if retry > 0 then return math.min(whole, retry), left, reset, nil, nil, nil, anchored, patience and wait end
  return 0, left, reset, after(needed), struct.pack('<I7I7I7I7', at, needed, permit, refill), 0, anchored, patience and wait
end
