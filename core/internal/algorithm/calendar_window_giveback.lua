-- CalendarWindow gives back within the window that the charge was made in. The bounds of a day or month
-- are those of that window. If the clock stepped back since, the state is of an earlier one, which ends
-- no later than that window begins.
algorithms.cw1 = function(key, now, charge, _, start, middle)
  local state = redis.call('GET', key)
  if not state then return end
  local at, used = struct.unpack('<I7I6', state)
  if #state ~= 13 or at >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
  if at > charge.at then return end
  used = math.max(0, used - charge.cost)
  if used == 0 then return {change = function() redis.call('DEL', key) end, lives = 0} end
  local ends = at + start
  if middle + 0 > 0 then ends = at < start + 0 and start or middle end
  return {change = struct.pack('<I7I6', at, used), lives = math.max(0, ends - now)}
end
