-- Gives back what one call charged, as far as it still counts. It never leaves a counter with less than other calls used.
--
-- KEYS[i]   the counters, all in one cluster slot
-- ARGV      eight for each counter: algorithm, permits to give back, when they were charged (microseconds: the first number of
--           that reply), reset after (microseconds: of that reply), and the algorithm's args, padded to four
-- reply     a list of one: how many counters were changed
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function write(key, state, lives)
  redis.call('SET', key, state, 'PXAT', math.floor((now + lives) / 1000) + 1)
  return 1
end

function algorithms.sw1(key, cost, charged_at, _, _, window)
  local state = redis.call('GET', key)
  if not state then return 0 end
  local phase = charged_at % window
  local index = (charged_at - phase) / window * 32 + math.floor(phase * 32 / window)
  local charged, used, own = struct.unpack('<I7I6I6', state)
  local older = string.sub(state, 20)
  if charged == index then
    local back = math.min(cost, own)
    return write(key, struct.pack('<I7I6I6', charged, used - back, own - back) .. older, 2 * window)
  end
  for at = 1, #older, 6 do
    local slot, permits = struct.unpack('<I1I5', older, at)
    if charged - (charged - slot) % 64 == index then
      local back = math.min(cost, permits)
      local entry = permits > back and struct.pack('<I1I5', slot, permits - back) or ''
      older = string.sub(older, 1, at - 1) .. entry .. string.sub(older, at + 6)
      return write(key, struct.pack('<I7I6I6', charged, used - back, own) .. older, 2 * window)
    end
  end
  return 0
end

-- The newest entry of that moment that has the permits, and the note.
function algorithms.sl1(key, cost, charged_at, _, _, window, note)
  for at = redis.call('LLEN', key) - 1, 0, -1 do
    local text = redis.call('LINDEX', key, at)
    local when, sum, own = struct.unpack('<I7I7I2', text)
    if when < charged_at then return 0 end
    if when == charged_at and own >= cost and string.sub(text, 17) == note then
      redis.call('LSET', key, at, struct.pack('<I7I7I2', when, sum, own - cost) .. note)
      for later = at, redis.call('LLEN', key) - 1 do
        text = redis.call('LINDEX', key, later)
        when, sum, own = struct.unpack('<I7I7I2', text)
        redis.call('LSET', key, later, struct.pack('<I7I7I2', when, sum - cost, own) .. string.sub(text, 17))
        if later == at and own == 0 then redis.call('LSET', key, at, '') end
      end
      redis.call('LREM', key, 1, '')
      redis.call('PEXPIREAT', key, math.floor((now + window) / 1000) + 1)
      return 1
    end
  end
  return 0
end

function algorithms.fw1(key, cost, charged_at, _, _, window)
  local state = redis.call('GET', key)
  if not state then return 0 end
  local start, used = struct.unpack('<I7I6', state)
  if start > charged_at or charged_at - start >= window then return 0 end
  return write(key, struct.pack('<I7I6', start, math.max(0, used - cost)), 2 * window)
end

function algorithms.cw1(key, cost, charged_at, _, _, start, middle, ends)
  local state = redis.call('GET', key)
  if not state then return 0 end
  local at, used = struct.unpack('<I7I6', state)
  if at > charged_at then return 0 end
  return write(key, struct.pack('<I7I6', at, math.max(0, used - cost)), middle == 0 and start or ends - start)
end

-- Neither what has come back since by itself is given back, nor, of a bucket that the charge overdrew, what others who wait
-- behind it have been told to wait for.
function algorithms.tb1(key, cost, charged_at, reset, burst, permit, refill, tick)
  local state = redis.call('GET', key)
  if not state then return 0 end
  local at, charged = math.floor(now / tick), math.floor(charged_at / tick)
  local last, used, unit = struct.unpack('<I7I7I7', state)
  local ticks = math.floor((charged_at + reset) / tick) - charged -- in which all that was used after the charge has come back
  local since = math.max(0, at - charged)
  if unit ~= permit or last > at or since >= ticks then return 0 end
  cost = cost * permit
  local refilled, used_then = since * refill, (ticks - 1) * refill + 1
  used = math.max(0, used - (at - last) * refill)
  local back = cost - math.max(0, refilled - math.max(0, used_then - cost))
  if used_then > burst * permit then
    back = math.min(back, cost - math.max(0, used + refilled - used_then))
  end
  if back <= 0 then return 0 end
  used = math.max(0, used - back)
  return write(key, struct.pack('<I7I7I7', at, used, permit), (math.floor(used / refill) + 1) * tick)
end

function algorithms.cc1(key, _, _, _, _, _, holder)
  return redis.call('ZREM', key, holder)
end

local changed = 0
for i = 1, #KEYS do
  local a = 8 * i - 7
  local algorithm, args = ARGV[a], {}
  for n = 1, 7 do args[n] = ARGV[a + n] end
  for n = 1, 7 do
    if n ~= 6 or algorithm ~= 'sl1' and algorithm ~= 'cc1' then args[n] = args[n] + 0 end
  end
  changed = changed + algorithms[algorithm](KEYS[i], unpack(args))
end
return {changed}
