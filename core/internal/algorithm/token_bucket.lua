-- TokenBucket: a bucket of burst permits that starts full and refills continuously.
--
-- A permit is divided into so many units that a whole number of them comes back per tick: nothing rounds, whatever the rate.
--
-- args      burst, permit (units), refill (units per tick), tick (microseconds: 1, or 1000 for windows of an hour and more)
-- state     little-endian: I7 last tick, I7 units used and not yet refilled, I7 units per permit when that was written
-- keeps     units used stay below 2^52, so every sum here is exact in a double
algorithms.tb1 = function(state, now, cost, burst, permit, refill, tick)
  local at = (now - now % tick) / tick
  local used, anchored = 0, nil
  if state then
    local last, unit
    last, used, unit = struct.unpack('<I7I7I7', state)
    if unit ~= permit then
      -- The rate was changed: what was used stays used, counted in the new units, the last fraction rounded up.
      local whole = math.floor(used / unit)
      used = whole * permit + math.min(permit, math.ceil((used - whole * unit) * permit / unit))
    end
    -- A rate that was lowered far leaves nobody waiting longer than 71 years, which every language's durations can hold.
    used = math.min(used, 2 ^ 52, math.floor(2 ^ 51 / tick) * refill)
    if last > at then
      -- The clock stepped back: the refill goes on from now, with nothing minted.
      anchored = struct.pack('<I7I7I7', at, used, permit)
    else
      used = math.max(0, used - (at - last) * refill)
    end
  end

  local function after(units)
    return (at + math.ceil(units / refill)) * tick - now
  end

  local left = math.floor((burst * permit - used) / permit)
  local reset = used > 0 and after(used) or 0
  local needed = used + cost * permit
  if needed > burst * permit then
    return after(needed - burst * permit), left, reset, nil, nil, anchored
  end
  return 0, left, reset, after(needed), struct.pack('<I7I7I7', at, needed, permit), anchored
end
