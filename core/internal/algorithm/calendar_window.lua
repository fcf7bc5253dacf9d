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
steps.cw2 = function(state, now, ask, unit, max, start, middle, ends)
  if middle == 0 then
    start, middle = now - now % start, now - now % start + start
  elseif now < start or now >= ends then
    return -2
  elseif now >= middle then
    start, middle = middle, ends
  end

  local used, born, moved = 0, now, nil
  if state then
    if #state ~= 20 then return -1 end
    local at
    at, used, born = struct.unpack('<I7I6I7', state)
    if at >= 2 ^ 53 or born >= 2 ^ 53 then return -1 end
    if at > start then
      -- The clock stepped back: everything that was used counts as used in this window.
      born = math.min(now, born - 1)
      moved = struct.pack('<I7I6I7', start, used, born)
    elseif at < start then
      used = 0
    end
    if used == 0 then born = now end
  end

  local fit = ask
  if used + ask * unit > max then fit = math.max(0, math.floor((max - used) / unit)) end
  local written = fit > 0 and struct.pack('<I7I6I7', start, used + fit * unit, born) or moved
  return fit, written, written and string.format('%d', middle / 1000 + 1), nil, born
end

-- It gives back within the window that the charge was made in. Of a day or month, the args are the
-- bounds of that window and the end of the next one or, if a bill gives back, those of the window of
-- the process's clock. If the state's window is an earlier one, it ends no later than those begin.
changes.cw2 = function(state, now, cost, charged_at, position, _, _, _, start, middle, ends)
  if not state then return end
  if #state ~= 20 then return -1 end
  local at, used, born = struct.unpack('<I7I6I7', state)
  if at >= 2 ^ 53 or born >= 2 ^ 53 then return -1 end
  if at > charged_at or born ~= position then return end
  if used <= cost then return '' end
  local over, longest = at + start, start
  if middle > 0 then
    longest = ends - start
    if at < start then over = start elseif at < middle then over = middle else over = ends end
  end
  -- If the clock stepped back, the next charge moves the use into a window before the one of the state.
  return struct.pack('<I7I6I7', at, used - cost, born), now + math.max(0, math.min(over - now, longest))
end
