-- QuietPeriod: at most max permits until nobody was charged for window microseconds.
--
-- args      max, window (microseconds)
-- state     a string, little-endian: I7 last charge (microseconds), I6 permits used
algorithms.qp1 = function(key, now, cost, max, window)
  local state = redis.call('GET', key)
  max, window = max + 0, window + 0
  local at, used, anchored = now, 0, nil
  if state then
    at, used = struct.unpack('<I7I6', state)
    if #state ~= 13 or at >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
    if at > now then
      at, anchored = now, struct.pack('<I7I6', now, used)
    elseif now - at >= window then
      used = 0
    end
  end
  local ends = at + window - now
  local reset = used > 0 and ends or 0
  if used + cost > max then return {retry = ends, left = max - used, reset = reset, anchored = anchored} end
  return {
    retry = 0, left = max - used, reset = reset, anchored = anchored,
    charged = struct.pack('<I7I6', now, used + cost), charged_reset = window,
  }
end
