-- CalendarWindow gives back within the window that the charge was made in. Of a day or month, the bounds
-- are those of that window or, if a bill gives back, of the process's window and the next one. A window
-- before these ends no later than they begin.
algorithms.cw1 = function(key, now, charge, _, start, middle, ends)
  local state = redis.call('GET', key)
  if not state then return end
  local at, used = struct.unpack('<I7I6', state)
  if #state ~= 13 or at >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
  if at > charge.at then return end
  used = math.max(0, used - charge.cost)
  if used == 0 then return {change = function() redis.call('DEL', key) end, lives = 0} end

  start, middle, ends = start + 0, middle + 0, ends + 0
  local over, longest = at + start, start
  if middle > 0 then
    longest = ends - start
    if at < start then over = start elseif at < middle then over = middle else over = ends end
  end
  -- If the clock stepped back, the next charge moves the use into a window before the one of the state.
  return {change = struct.pack('<I7I6', at, used), lives = math.max(0, math.min(over - now, longest))}
end
