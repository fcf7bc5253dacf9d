-- SlidingWindow: never more than max permits in any span of window microseconds.
--
-- Time is cut into sub-windows of window/32. A permit counts until no part of its sub-window lies
-- within the last window. So it comes back at most window/32 late and never early.
--
-- args      max, window (microseconds)
-- state     a string, little-endian: I7 number of the sub-window charged last, I6 permits used in
--           the window, I6 permits used in that sub-window; then, oldest first, for each older
--           sub-window that still counts I1 number modulo 64, I5 permits
-- keeps     the permits used in the window are the sum of those of its sub-windows
algorithms.sw1 = function(key, now, cost, max, window)
  local state = redis.call('GET', key)
  max, window = max + 0, window + 0
  local phase = now % window
  local index = (now - phase) / window * 32 + math.floor(phase * 32 / window)
  local charged, used, own, older, anchored = index, 0, 0, '', nil

  -- Returns how long the permits of sub-window n, which count now, still do: until sub-window n +
  -- 33 begins.
  local function free_after(n)
    if n < index - 32 then error('NOTACOUNTER ' .. key) end
    local part = (n + 33) % 32
    return (n + 33 - part) / 32 * window + math.ceil(part * window / 32) - now
  end

  if state then
    charged, used, own = struct.unpack('<I7I6I6', state)
    if #state % 6 ~= 1 or charged >= 2 ^ 53 or own > used then error('NOTACOUNTER ' .. key) end
    older = string.sub(state, 20)
    if charged > index then
      -- The clock stepped back: everything used counts as used now. So no permits are created, and
      -- nobody waits longer than one window and a sub-window.
      charged, own, older = index, used, ''
      anchored = struct.pack('<I7I6I6', index, used, used)
    elseif charged < index then
      local keep = 1
      while keep < #older do
        local slot, permits = struct.unpack('<I1I5', older, keep)
        if charged - (charged - slot) % 64 >= index - 32 then break end
        used, keep = used - permits, keep + 6
      end
      if used < own then error('NOTACOUNTER ' .. key) end
      older = string.sub(older, keep)
      if charged < index - 32 then
        used = 0
      elseif own > 0 then
        older = older .. struct.pack('<I1I5', charged % 64, own)
      end
      own = 0
    end
  end

  local reset = 0
  if own > 0 then
    reset = free_after(index)
  elseif older ~= '' then
    local slot = string.byte(older, -6)
    reset = free_after(charged - (charged - slot) % 64)
  end

  local missing = used + cost - max
  if missing <= 0 then
    local charge = struct.pack('<I7I6I6', index, used + cost, own + cost) .. older
    return 0, max - used, reset, free_after(index), charge, 0, anchored
  end
  for at = 1, #older, 6 do
    local slot, permits = struct.unpack('<I1I5', older, at)
    missing = missing - permits
    if missing <= 0 then
      return free_after(charged - (charged - slot) % 64), max - used, reset, nil, nil, nil, anchored
    end
  end
  return free_after(index), max - used, reset, nil, nil, nil, anchored
end
