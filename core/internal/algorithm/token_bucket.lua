-- TokenBucket: a bucket of burst permits that starts full and refills continuously. A bucket has one
-- rate, that of the call: each call refills the time since the last one at its own rate, and must fit
-- into its own burst. So calls at several rates together never exceed the largest burst and what the
-- fastest rate brings back. The state is forgotten when the rate of the last call has brought
-- everything back, so no wait becomes longer because a rate was lowered.
--
-- A permit is divided into units such that a whole number of units comes back per tick, so nothing is
-- rounded at any rate. If another rate divides it otherwise, the use is rounded up to whole units.
--
-- Positions number the charged permits in order, and the oldest ones come back first. So those in use
-- have the last positions.
--
-- args      units per permit, units refilled per tick, tick (microseconds: 1, or 1000 for windows of
--           an hour and more), units of the full bucket, patience (microseconds): a bucket may be
--           overdrawn by what comes back within that time. The cost is in these units as well
-- state     a string, little-endian: I7 last tick, I7 units used, I6 units per permit, I5 units
--           refilled per tick, I7 position of the last charge, I7 birth (microseconds): when the first
--           of the permits in use was charged, or earlier
-- keeps     units used and positions are at most 2^52, so every sum here is exact in a double. The
--           positions begin with the time of the birth (modulo 2^51). So if the clock steps back, the
--           charges of a counter that was reset or forgotten are not taken for those of its successor
steps.tb4 = function(state, now, ask, unit, permit, refill, tick, full, patience)
  local at = now
  if tick ~= 1 then at = (now - now % tick) / tick end

  local used, charged, born, whole, moved = 0, nil, now, math.huge, nil
  if state then
    if #state ~= 39 then return -1 end
    local last, divided, rate
    last, used, divided, rate, charged, born = struct.unpack('<I7I7I6I5I7I7', state)
    if last >= 2 ^ 53 or used > 2 ^ 52 or divided == 0 or rate == 0 or charged > 2 ^ 52 or born >= 2 ^ 53 then return -1 end
    if last > at then
      -- The clock stepped back: the refill continues from now, and no permits are created.
      last, born = at, math.min(born, at * tick)
      moved = struct.pack('<I7I7I6I5I7I7', at, used, divided, rate, charged, born)
    end
    if divided ~= permit or rate ~= refill then
      local permits = math.floor(used / divided)
      whole = last + math.ceil(used / rate) - at
      used = math.min(permits * permit + math.min(permit, math.ceil((used - permits * divided) * permit / divided)), 2 ^ 52)
    end
    used = used - (at - last) * refill
    if used <= 0 or whole <= 0 then used, charged, born, whole = 0, nil, now, math.huge end
  end

  if patience > 0 then
    -- No wait is longer than 71 years, which the durations of all languages can hold.
    local ticks = math.floor((patience + now % tick) / tick)
    full = math.min(full + ticks * refill, math.floor(2 ^ 51 / tick) * refill, 2 ^ 52)
  end
  local fit, needed = ask, used + ask * unit
  if needed > full then
    fit = math.max(0, math.floor((full - used) / unit))
    needed = used + fit * unit
  end
  if fit == 0 then
    return 0, moved, moved and string.format('%d', (at + math.min(whole, used / refill)) * tick / 1000 + 1)
  end
  -- If positions begin anew, earlier charges can no longer be given back.
  charged = (charged or now % 2 ^ 51) + (needed - used) / permit
  if charged > 2 ^ 52 then charged, born = now % 2 ^ 51 + (needed - used) / permit, now end
  return fit, struct.pack('<I7I7I6I5I7I7', at, needed, permit, refill, charged, born),
    string.format('%d', (at + needed / refill) * tick / 1000 + 1), nil, charged
end

-- It does not give back permits that have already come back by themselves. Those that were charged
-- first come back first, so the oldest permits in use are given back. If later charges were given
-- back before, that may be fewer than still count.
--
-- If the bucket is overdrawn, callers wait for permits behind others, and were told how long. So a
-- charge comes back only whole, and only if nothing was charged behind it, unless it was charged in
-- debt. Then its permits are taken from the end.
changes.tb4 = function(state, now, cost, charged_at, position, whole, in_debt, own, _, tick, full)
  if not state then return end
  if #state ~= 39 then return -1 end
  local at = (now - now % tick) / tick
  local last, used, permit, refill, charged, born = struct.unpack('<I7I7I6I5I7I7', state)
  if last >= 2 ^ 53 or used > 2 ^ 52 or permit == 0 or refill == 0 or charged > 2 ^ 52 or born >= 2 ^ 53 then return -1 end
  if last > at then last, born = at, math.min(born, at * tick) end
  used = used - (at - last) * refill
  local behind = charged - position
  if used <= 0 or charged_at < born or behind < 0 then return end

  local back = math.max(0, math.min(cost * permit, used - behind * permit))
  if used > full / own * permit and in_debt == 0 then
    if behind > 0 or whole == 0 then return end
    charged = charged - cost
  end
  if back == 0 then return end
  used = used - back
  if used == 0 then return '' end
  return struct.pack('<I7I7I6I5I7I7', at, used, permit, refill, charged, born), (at + math.ceil(used / refill)) * tick
end
