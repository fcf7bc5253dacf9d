-- CalendarWindow gives back within the window that the charge was made in. Of a day or month, the args
-- are the bounds of that window and the end of the next one or, if a bill gives back, those of the window
-- of the process's clock. If the state's window is an earlier one, it ends no later than those begin.
--
-- lost      as in fixed_window_giveback.lua
algorithms.cw2 = function(key, now, charge, _, start, middle, ends)
  local state = redis.call('GET', key)
  if not state then return end
  local at, used, born = struct.unpack('<I7I6I7', state)
  if #state ~= 20 or at >= 2 ^ 53 or born >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
  if at > charge.at then return end
  start, middle, ends = start + 0, middle + 0, ends + 0
  local over, longest = at + start, start
  if middle > 0 then
    longest = ends - start
    if at < start then over = start elseif at < middle then over = middle else over = ends end
  end
  if born ~= charge.position then
    local counts = born <= charge.at and now < over
    return {lost = counts and math.min(charge.cost, used) or 0}
  end
  used = math.max(0, used - charge.cost)
  if used == 0 then return {change = function() redis.call('DEL', key) end, lives = 0} end
  -- If the clock stepped back, the next charge moves the use into a window before the one of the state.
  return {change = struct.pack('<I7I6I7', at, used, born), lives = math.max(0, math.min(over - now, longest))}
end
