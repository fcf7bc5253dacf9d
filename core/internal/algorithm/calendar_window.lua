-- CalendarWindow: at most max permits in each window of the clock: every window microseconds since
-- the epoch, or every day or month of a zone. Redis does not know time zones, so the script
-- receives the bounds of two days or months and picks one.
--
-- args      max; then window (microseconds), 0, 0; or the start of a day or month, its end, and the
--           end of the next
-- state     a string, little-endian: I7 start of the window (microseconds), I6 permits used in it,
--           I7 birth (microseconds): when the first of them was used. If the clock steps back, the
--           birth moves to a time before all of them
-- position  of a charge: the birth of its window
algorithms.cw2 = function(key, now, cost, max, start, middle, ends, debt)
  local state = redis.call('GET', key)
  max, start, middle, ends = max + 0, start + 0, middle + 0, ends + 0
  if middle == 0 then
    start, middle = now - now % start, now - now % start + start
  elseif now < start or now >= ends then
    return nil
  elseif now >= middle then
    start, middle = middle, ends
  end

  local used, born, anchored = 0, now, nil
  if state then
    local at
    at, used, born = struct.unpack('<I7I6I7', state)
    if #state ~= 20 or at >= 2 ^ 53 or born >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
    if at > start then
      -- The clock stepped back: everything that was used counts as used in this window.
      born = math.min(now, born - 1)
      anchored = struct.pack('<I7I6I7', start, used, born)
    elseif at < start then
      used = 0
    end
    if used == 0 then born = now end
  end

  local ends_after = middle - now
  local reset = used > 0 and ends_after or 0
  if debt then cost = math.max(0, math.min(cost, max + debt - used)) end
  if used + cost > max and not debt then
    return {retry = ends_after, left = max - used, reset = reset, anchored = anchored}
  end
  return {
    retry = 0, left = max - used, reset = reset, anchored = anchored, cost = cost,
    charged = struct.pack('<I7I6I7', start, used + cost, born), charged_reset = ends_after, position = born,
  }
end
