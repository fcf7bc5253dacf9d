-- SlidingWindow gives back to the sub-window that the charge was made in.
algorithms.sw1 = function(key, _, charge, _, window)
  local state = redis.call('GET', key)
  if not state then return end
  local phase = charge.at % window
  local index = (charge.at - phase) / window * 32 + math.floor(phase * 32 / window)
  local charged, used, own = struct.unpack('<I7I6I6', state)
  local older = string.sub(state, 20)
  if #state % 6 ~= 1 or charged >= 2 ^ 53 or own > used then error('NOTACOUNTER ' .. key) end
  if charged == index then
    local back = math.min(charge.cost, own)
    return {change = struct.pack('<I7I6I6', charged, used - back, own - back) .. older, lives = 2 * window}
  end
  for at = 1, #older, 6 do
    local slot, permits = struct.unpack('<I1I5', older, at)
    if charged - (charged - slot) % 64 == index then
      if permits > used - own then error('NOTACOUNTER ' .. key) end
      local back = math.min(charge.cost, permits)
      local entry = permits > back and struct.pack('<I1I5', slot, permits - back) or ''
      older = string.sub(older, 1, at - 1) .. entry .. string.sub(older, at + 6)
      return {change = struct.pack('<I7I6I6', charged, used - back, own) .. older, lives = 2 * window}
    end
  end
end
