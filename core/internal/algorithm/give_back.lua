-- Gives back what one call charged, as far as it still counts. It never leaves a counter with less than other calls used.
--
-- KEYS[i]   the counters, all in one cluster slot
-- ARGV[1]   when they were charged (microseconds: the first number of that reply)
-- ARGV      then six for each counter, as for the decision: algorithm, cost, and the algorithm's args, padded to four
-- reply     a list of one: how many counters were changed
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local charged_at = ARGV[1] + 0

function algorithms.sw1(state, cost, max, window)
  local phase = charged_at % window
  local index = (charged_at - phase) / window * 32 + math.floor(phase * 32 / window)
  local charged, used, own = struct.unpack('<I7I6I6', state)
  local older = string.sub(state, 20)
  if charged == index then
    local back = math.min(cost, own)
    return struct.pack('<I7I6I6', charged, used - back, own - back) .. older, 2 * window
  end
  for at = 1, #older, 6 do
    local slot, permits = struct.unpack('<I1I5', older, at)
    if charged - (charged - slot) % 64 == index then
      local back = math.min(cost, permits)
      local entry = permits > back and struct.pack('<I1I5', slot, permits - back) or ''
      older = string.sub(older, 1, at - 1) .. entry .. string.sub(older, at + 6)
      return struct.pack('<I7I6I6', charged, used - back, own) .. older, 2 * window
    end
  end
end

function algorithms.fw1(state, cost, max, window)
  local start, used = struct.unpack('<I7I6', state)
  if start <= charged_at and charged_at - start < window then
    return struct.pack('<I7I6', start, math.max(0, used - cost)), 2 * window
  end
end

-- What has been refilled since the charge is not given back again: that would mint it.
function algorithms.tb1(state, cost, burst, permit, refill, tick)
  local at = math.floor(now / tick)
  local last, used, unit = struct.unpack('<I7I7I7', state)
  if unit ~= permit or last > at then return nil end
  local back = cost * permit - math.max(0, at - math.floor(charged_at / tick)) * refill
  if back > 0 then
    used = math.max(0, used - math.min(used, (at - last) * refill) - back)
    return struct.pack('<I7I7I7', at, used, permit), (math.floor(used / refill) + 1) * tick
  end
end

local changed = 0
for i = 1, #KEYS do
  local a = 6 * i - 4
  local state = redis.call('GET', KEYS[i])
  if state then
    local left, lives = algorithms[ARGV[a]](state, ARGV[a + 1] + 0,
      ARGV[a + 2] + 0, ARGV[a + 3] + 0, ARGV[a + 4] + 0, ARGV[a + 5] + 0)
    if left then
      redis.call('SET', KEYS[i], left, 'PXAT', math.floor((now + lives) / 1000) + 1)
      changed = changed + 1
    end
  end
end
return {changed}
