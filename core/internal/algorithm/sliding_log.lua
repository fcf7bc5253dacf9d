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
    end
  end

  local function keep(when)
    if first > 0 then redis.call('LTRIM', key, first, -1) end
    for at = 0, when and length - first - 1 or -1 do
      local _, upto, own, text = entry(at)
      redis.call('LSET', key, at, struct.pack('<I7I7I2', when, upto, own) .. text)
    end
  end

  local back = newest > now
  if back then
    -- The clock stepped back: everything used counts as used now, so nothing is minted and nobody waits over a window.
    newest = now
    anchored = function() keep(now) end
  end
  local reset = used > 0 and newest + window - now or 0

  local missing = used + cost - max
  if missing > 0 then
    local wait = window
    if not back then
      local freeing = search(first, 2, before + missing - 1)
      if freeing < length then wait = entry(freeing) + window - now end
    end
    return wait, max - used, reset, nil, nil, anchored
  end
  return 0, max - used, reset, window, function()
    keep(back and now)
    redis.call('RPUSH', key, struct.pack('<I7I7I2', now, (first < length and sum or 0) + cost, cost) .. note)
  end, anchored
end
