-- FixedWindow: at most max permits from the first call until window microseconds later; then a
-- fresh window.
--
-- args      max, window (microseconds)
-- state     a string, little-endian: I7 start of the window (microseconds), I6 permits used in it
-- position  of a charge: the start of its window, which moves if the clock steps back
steps.fw1 = function(state, now, ask, unit, max, window)
  local start, used, moved = now, 0, nil
  if state then
    if #state ~= 13 then return -1 end
    start, used = struct.unpack('<I7I6', state)
    if start >= 2 ^ 53 then return -1 end
    if start > now then
      -- The clock stepped back: the window restarts and keeps its use, so that nobody waits longer
      -- than one window.
      start, moved = now, struct.pack('<I7I6', now, used)
    elseif used == 0 or now - start >= window then
      start, used = now, 0
    end
  end

  local fit = ask
  if used + ask * unit > max then fit = math.max(0, math.floor((max - used) / unit)) end
  local written = fit > 0 and struct.pack('<I7I6', start, used + fit * unit) or moved
  return fit, written, written and string.format('%d', (start + window) / 1000 + 1), nil, start
end

-- It gives back within the window that the charge was made in. After the clock stepped back, the
-- permits of a charge can no longer be told apart from those of others.
changes.fw1 = function(state, now, cost, _, position, _, _, _, window)
  if not state then return end
  if #state ~= 13 then return -1 end
  local start, used = struct.unpack('<I7I6', state)
  if start >= 2 ^ 53 then return -1 end
  if start ~= position then return end
  if used <= cost then return '' end
  -- If the clock stepped back, the next charge makes the window begin then.
  local lives = math.max(0, math.min(start + window - now, window))
  return struct.pack('<I7I6', start, used - cost), now + lives
end
