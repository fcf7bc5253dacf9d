-- FixedWindow: at most max permits from the first call until window microseconds later; then a
-- fresh window.
--
-- args      max, window (microseconds)
-- state     a string, little-endian: I7 start of the window (microseconds), I6 permits used in it
-- position  of a charge: the start of its window, which moves if the clock steps back
algorithms.fw1 = function(key, now, cost, max, window, _, _, debt)
  local state = redis.call('GET', key)
  local start, used, anchored = now, 0, nil
  max, window = max + 0, window + 0
  if state then
    start, used = struct.unpack('<I7I6', state)
    if #state ~= 13 or start >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
    if start > now then
      -- The clock stepped back: the window restarts and keeps its use, so that nobody waits longer
      -- than one window.
      start = now
      anchored = struct.pack('<I7I6', start, used)
    elseif used == 0 or now - start >= window then
      start, used = now, 0
    end
  end

  local ends = start + window - now
  local reset = used > 0 and ends or 0
  if debt then cost = math.max(0, math.min(cost, max + debt - used)) end
  if used + cost > max and not debt then return {retry = ends, left = max - used, reset = reset, anchored = anchored} end
  return {
    retry = 0, left = max - used, reset = reset, anchored = anchored, cost = cost,
    charged = struct.pack('<I7I6', start, used + cost), charged_reset = ends, position = start,
  }
end
