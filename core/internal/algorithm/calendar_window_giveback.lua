-- CalendarWindow gives back within the window that the charge was made in.
algorithms.cw1 = function(key, _, charge, _, start, middle, ends)
  local state = redis.call('GET', key)
  if not state then return end
  local at, used = struct.unpack('<I7I6', state)
  if #state ~= 13 or at >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
  if at > charge.at then return end
  local lives = middle + 0 == 0 and start + 0 or ends - start
  return {change = struct.pack('<I7I6', at, math.max(0, used - charge.cost)), lives = lives}
end
