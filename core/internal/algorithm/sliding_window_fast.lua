-- SlidingWindow, in the common cases, at half the cost of sliding_window.lua: see decide_fast.lua.
--
-- args      cost of all calls together, cost of one call, max, window (microseconds)
-- reply     a string that begins with I1 1 if all are charged, otherwise 0, and I7 now
--           (microseconds). If all are charged: then I6 permits used before, and I7 birth.
--           Otherwise: then the state as found
-- uncommon  the clock stepped back, or the value is no state of ours
-- state     as in sliding_window.lua
fast.sw2 = function(state, now, asked, cost, max, window)
  local phase = now % window
  local part = phase * 32 / window
  local index = (now - phase) / window * 32 + part - part % 1

  local used, own, born, older = 0, 0, now, ''
  if state then
    if #state < 26 or #state % 6 ~= 2 then return -1 end
    local charged
    charged, used, own, born = struct.unpack('<I7I6I6I7', state)
    if charged > index or own > used or born >= 2 ^ 53 then return -1 end
    if #state > 26 then older = string.sub(state, 27) end
    if charged < index then
      local keep = 1
      while keep < #older do
        local slot, permits = struct.unpack('<I1I5', older, keep)
        if charged - (charged - slot) % 64 >= index - 32 then break end
        used, keep = used - permits, keep + 6
      end
      if used < own then return -1 end
      if keep > 1 then older = string.sub(older, keep) end
      if charged < index - 32 then
        used = 0
      elseif own > 0 then
        older = older .. struct.pack('<I1I5', charged % 64, own)
      end
      own = 0
    end
    if used == 0 then born = now end
  end

  local charge = asked
  if used + asked > max then
    charge = math.floor((max - used) / cost) * cost
    if charge < cost then return struct.pack('<I1I7', 0, now) .. (state or '') end
  end
  local reply = charge == asked and struct.pack('<I1I7I6I7', 1, now, used, born) or struct.pack('<I1I7', 0, now) .. (state or '')
  return reply, charge / cost, struct.pack('<I7I6I6I7', index, used + charge, own + charge, born) .. older,
    string.format('%d', (now + window + window / 32) / 1000 + 1)
end
