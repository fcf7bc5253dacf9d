-- SlidingLog: never more than max permits in any span of window microseconds, to the microsecond.
--
-- args      max, window (microseconds), note
-- state     a list of the admitted calls, oldest first, each little-endian: I7 when (microseconds), I7 permits admitted up to and
--           with it, I2 its own permits; then its note. Entries that no longer count stay until the next charge
algorithms.sl1 = function(key, now, cost, max, window, note)
  max, window = max + 0, window + 0
  local length = redis.call('LLEN', key)

  local function entry(at)
    local text = redis.call('LINDEX', key, at)
    local when, sum, own = struct.unpack('<I7I7I2', text)
    if when >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
    return when, sum, own, string.sub(text, 17)
  end

  -- The first entry that is so late, or that sums up to so much; most often that is the first of all.
  local function search(low, field, above)
    local high = length
    if low < high and select(field, entry(low)) > above then return low end
    while low < high do
      local middle = math.floor((low + high) / 2)
      if select(field, entry(middle)) > above then high = middle else low = middle + 1 end
    end
    return low
  end

  local first, used, before, sum, newest, anchored = 0, 0, 0, 0, now, nil
  if length > 0 then
    newest, sum = entry(length - 1)
    first = search(0, 1, math.max(newest - now, 0) + now - window)
    if first < length then
      local _, upto, own = entry(first)
      before = upto - own
      used = sum - before
      if newest <= now - window or before < 0 or used < own then error('NOTACOUNTER ' .. key) end
    end
  end

  local moved = {} -- what is written anew is read here, where an entry that is none of ours is still an error that changed nothing
  local function keep()
    if first > 0 then redis.call('LTRIM', key, first, -1) end
    for at = 1, #moved do redis.call('LSET', key, at - 1, moved[at]) end
  end

  local back = newest > now
  if back then
    -- The clock stepped back: everything used counts as used now, so nothing is minted and nobody waits over a window.
    newest = now
    for at = first, length - 1 do
      local _, upto, own, text = entry(at)
      moved[at - first + 1] = struct.pack('<I7I7I2', now, upto, own) .. text
    end
    anchored = keep
  end
  local reset = used > 0 and newest + window - now or 0

  local missing = used + cost - max
  if missing > 0 then
    local wait = window
    if not back then
      local freeing = search(first, 2, before + missing - 1)
      if freeing < length then wait = entry(freeing) + window - now end
      if wait < 1 or wait > window then error('NOTACOUNTER ' .. key) end
    end
    return wait, max - used, reset, nil, nil, nil, anchored
  end
  return 0, max - used, reset, window, function()
    keep()
    redis.call('RPUSH', key, struct.pack('<I7I7I2', now, (first < length and sum or 0) + cost, cost) .. note)
  end, 0, anchored
end
