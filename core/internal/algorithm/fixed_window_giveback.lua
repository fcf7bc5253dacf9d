-- FixedWindow gives back within the window that the charge was made in.
--
-- lost      in the table: how many permits may still have counted, but were not given back, because
--           they can no longer be told apart from those of others after the clock stepped back
algorithms.fw1 = function(key, now, charge, _, window)
  local state = redis.call('GET', key)
  if not state then return end
  local start, used = struct.unpack('<I7I6', state)
  if #state ~= 13 or start >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
  if start ~= charge.position then
    local counts = start <= charge.at and now - start < window + 0
    return {lost = counts and math.min(charge.cost, used) or 0}
  end
  used = math.max(0, used - charge.cost)
  if used == 0 then return {change = function() redis.call('DEL', key) end, lives = 0} end
  -- If the clock stepped back, the next charge makes the window begin then.
  return {change = struct.pack('<I7I6', start, used), lives = math.max(0, math.min(start + window - now, window))}
end
