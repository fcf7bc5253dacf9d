-- SlidingWindow: never more than max permits in any span of window microseconds.
--
-- Time is cut into sub-windows of window/32. A permit counts as long as any moment of its
-- sub-window lies within the last window. That is during 33 sub-windows, so it comes back at most
-- window/32 late and never early.
--
-- args      max, window (microseconds)
-- state     a string, little-endian: I7 number of the sub-window charged last, I6 permits used in
--           the window, I6 permits used in that sub-window, I7 birth (microseconds): when permits
--           were first used since none was in use; then, oldest first, every older sub-window that
--           still counts: I1 number modulo 64, I5 permits. If the clock steps back, the birth moves
--           to a time before all of them
-- position  of a charge: the birth of its state
-- keeps     the second number is the sum of the third and of all that follow it
-- reply     if all that is asked fits, the state as if everything had been used in the last sub-window:
--           then it does not matter in which it was, and the reply is short
steps.sw2 = function(state, now, ask, unit, max, window)
  local phase = now % window
  local part = phase * 32 / window
  local index = (now - phase) / window * 32 + part - part % 1

  local used, own, born, older, moved = 0, 0, now, '', nil
  if state then
    if #state < 26 or #state % 6 ~= 2 then return -1 end
    local charged
    charged, used, own, born = struct.unpack('<I7I6I6I7', state)
    if charged >= 2 ^ 53 or born >= 2 ^ 53 or own > used then return -1 end
    if charged > index then
      -- The clock stepped back: everything that was used counts as used now, so no permits are
      -- created and nobody waits longer than one window.
      own, born = used, math.min(now, born - 1)
      moved = struct.pack('<I7I6I6I7', index, used, used, born)
    else
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
  end

  local fit = ask
  if used + ask * unit > max then
    fit = math.max(0, math.floor((max - used) / unit))
    if fit == 0 and not moved then return 0 end
  elseif ask == 0 and not moved then
    return 0
  end
  local rest = (index + 33) % 32 -- in sub-window index + 33, all is free again
  local expires = string.format('%d', ((index + 33 - rest) * window / 32 + rest * window / 32) / 1000 + 1)
  if fit == 0 then return 0, moved, expires end
  used, own = used + fit * unit, own + fit * unit
  local brief = fit == ask and older ~= '' and struct.pack('<I7I6I6I7', index, used, used, born) or nil
  return fit, struct.pack('<I7I6I6I7', index, used, own, born) .. older, expires, brief, born
end

-- It gives back to the sub-window that the charge was made in. After the clock stepped back, the
-- permits of a charge can no longer be told apart from those of others.
changes.sw2 = function(state, now, cost, at, position, _, _, _, window)
  if not state then return end
  if #state < 26 or #state % 6 ~= 2 then return -1 end
  local charged, used, own, born = struct.unpack('<I7I6I6I7', state)
  if charged >= 2 ^ 53 or born >= 2 ^ 53 or own > used then return -1 end
  if born ~= position then return end

  local phase = at % window
  local index = (at - phase) / window * 32 + math.floor(phase * 32 / window)
  local older, back = string.sub(state, 27), nil
  if charged == index then
    back = math.min(cost, own)
    own = own - back
  else
    for from = 1, #older, 6 do
      local slot, permits = struct.unpack('<I1I5', older, from)
      if charged - (charged - slot) % 64 == index then
        if permits > used - own then return -1 end
        back = math.min(cost, permits)
        local entry = permits > back and struct.pack('<I1I5', slot, permits - back) or ''
        older = string.sub(older, 1, from - 1) .. entry .. string.sub(older, from + 6)
        break
      end
    end
    if not back then return end
  end

  used = used - back
  local newest = charged
  if own == 0 then
    local slot = string.byte(older, -6)
    if not slot then return used > 0 and -1 or '' end
    newest = charged - (charged - slot) % 64
  end
  local part = (newest + 33) % 32
  local free = (newest + 33 - part) / 32 * window + math.ceil(part * window / 32)
  -- If the clock stepped back, the next charge moves the use into the sub-window of that time.
  return struct.pack('<I7I6I6I7', charged, used, own, born) .. older, now + math.max(0, math.min(free - now, 2 * window))
end
