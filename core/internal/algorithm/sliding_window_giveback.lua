-- SlidingWindow gives back to the sub-window that the charge was made in.
--
-- lost      as in fixed_window_giveback.lua
algorithms.sw2 = function(key, now, charge, _, window)
  local state = redis.call('GET', key)
  if not state then return end
  local function sub_window(time)
    local phase = time % window
    return (time - phase) / window * 32 + math.floor(phase * 32 / window)
  end
  local index = sub_window(charge.at)
  local charged, used, own, born = struct.unpack('<I7I6I6I7', state)
  local older, back = string.sub(state, 27), nil
  if #state % 6 ~= 2 or charged >= 2 ^ 53 or born >= 2 ^ 53 or own > used then error('NOTACOUNTER ' .. key) end
  if born ~= charge.position then
    local counts = born <= charge.at and math.min(charged, index) >= sub_window(now) - 32
    return {lost = counts and math.min(charge.cost, used) or 0}
  end
  if charged == index then
    back = math.min(charge.cost, own)
    own = own - back
  else
    for at = 1, #older, 6 do
      local slot, permits = struct.unpack('<I1I5', older, at)
      if charged - (charged - slot) % 64 == index then
        if permits > used - own then error('NOTACOUNTER ' .. key) end
        back = math.min(charge.cost, permits)
        local entry = permits > back and struct.pack('<I1I5', slot, permits - back) or ''
        older = string.sub(older, 1, at - 1) .. entry .. string.sub(older, at + 6)
        break
      end
    end
    if not back then return end
  end

  used = used - back
  local newest = charged
  if own == 0 then
    local slot = string.byte(older, -6)
    if not slot and used > 0 then error('NOTACOUNTER ' .. key) end
    if not slot then return {change = function() redis.call('DEL', key) end, lives = 0} end
    newest = charged - (charged - slot) % 64
  end
  local part = (newest + 33) % 32
  local free = (newest + 33 - part) / 32 * window + math.ceil(part * window / 32) -- as in sliding_window.lua
  -- If the clock stepped back, the next charge moves the use into the sub-window of that time.
  local lives = math.max(0, math.min(free - now, 2 * window))
  return {change = struct.pack('<I7I6I6I7', charged, used, own, born) .. older, lives = lives}
end
