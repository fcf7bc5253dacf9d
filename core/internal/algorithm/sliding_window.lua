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
--
-- sliding_window_fast.lua and sliding_window_giveback.lua have their own code to read and write the
-- state. Shared functions took Redis 3 to 5 % more instructions per decision.
algorithms.sw2 = function(key, now, cost, max, window, _, _, debt)
  local state = redis.call('GET', key)
  max, window = max + 0, window + 0
  local phase = now % window
  local index = (now - phase) / window * 32 + math.floor(phase * 32 / window)
  local charged, used, own, born, older, anchored = index, 0, 0, now, '', nil

  -- Returns the time until the permits of sub-window n, which still count, are free again. That is
  -- at the first microsecond of sub-window n + 33.
  local function free_after(n)
    if n < index - 32 then error('NOTACOUNTER ' .. key) end
    local part = (n + 33) % 32
    return (n + 33 - part) / 32 * window + math.ceil(part * window / 32) - now
  end

  if state then
    charged, used, own, born = struct.unpack('<I7I6I6I7', state)
    if #state % 6 ~= 2 or charged >= 2 ^ 53 or born >= 2 ^ 53 or own > used then error('NOTACOUNTER ' .. key) end
    older = string.sub(state, 27)
    if charged > index then
      -- The clock stepped back: everything that was used counts as used now, so no permits are
      -- created and nobody waits longer than one window.
      charged, own, born, older = index, used, math.min(now, born - 1), ''
      anchored = struct.pack('<I7I6I6I7', index, used, used, born)
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
    if used == 0 then born = now end
  end

  local reset = 0
  if own > 0 then
    reset = free_after(index)
  elseif older ~= '' then
    local slot = string.byte(older, -6)
    reset = free_after(charged - (charged - slot) % 64)
  end

  if debt then cost = math.max(0, math.min(cost, max + debt - used)) end
  local missing = used + cost - max
  if missing <= 0 or debt then
    return {
      retry = 0, left = max - used, reset = reset, anchored = anchored, cost = cost,
      charged = struct.pack('<I7I6I6I7', index, used + cost, own + cost, born) .. older, charged_reset = free_after(index),
      position = born,
    }
  end
  local freeing = index
  for at = 1, #older, 6 do
    local slot, permits = struct.unpack('<I1I5', older, at)
    missing = missing - permits
    if missing <= 0 then
      freeing = charged - (charged - slot) % 64
      break
    end
  end
  return {retry = free_after(freeing), left = max - used, reset = reset, anchored = anchored}
end
