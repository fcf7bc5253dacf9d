-- Gives back what one call charged, as far as it still counts. It never leaves a counter with less than other calls used.
--
-- KEYS[i]   the counters, all in one cluster slot, each once
-- ARGV      nine for each counter: algorithm, permits to give back, when they were charged (microseconds: the first number of
--           that reply), reset after (microseconds) and position (both of that reply), and the algorithm's args, padded to four
-- reply     a list of one: how many counters were changed
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- What is to be changed is told as a function, and done when all counters have been found to be ours. Nothing is nil.
local function write(key, state, lives)
  return function() redis.call('SET', key, state, 'PXAT', math.floor((now + lives) / 1000) + 1) end
end

local function ours(key, sound)
  if not sound then error('NOTACOUNTER ' .. key) end
end

function algorithms.sw1(key, cost, charged_at, _, _, _, window)
  local state = redis.call('GET', key)
  if not state then return end
  local phase = charged_at % window
  local index = (charged_at - phase) / window * 32 + math.floor(phase * 32 / window)
  local charged, used, own = struct.unpack('<I7I6I6', state)
  local older = string.sub(state, 20)
  ours(key, #state % 6 == 1 and charged < 2 ^ 53 and own <= used)
  if charged == index then
    local back = math.min(cost, own)
    return write(key, struct.pack('<I7I6I6', charged, used - back, own - back) .. older, 2 * window)
  end
  for at = 1, #older, 6 do
    local slot, permits = struct.unpack('<I1I5', older, at)
    if charged - (charged - slot) % 64 == index then
      ours(key, permits <= used - own)
      local back = math.min(cost, permits)
      local entry = permits > back and struct.pack('<I1I5', slot, permits - back) or ''
      older = string.sub(older, 1, at - 1) .. entry .. string.sub(older, at + 6)
      return write(key, struct.pack('<I7I6I6', charged, used - back, own) .. older, 2 * window)
    end
  end
end

-- The newest entry of that moment that has the permits, and the note. Those after it sum up to less then, and are written anew.
function algorithms.sl1(key, cost, charged_at, _, _, _, window, note)
  local function read(text)
    local when, sum, own = struct.unpack('<I7I7I2', text)
    ours(key, when < 2 ^ 53)
    return when, sum, own, string.sub(text, 17)
  end

  local function take(at)
    local later, kept = redis.call('LRANGE', key, at, -1), {}
    for i = 1, #later do
      local when, sum, own, text = read(later[i])
      if i == 1 then own = own - cost end
      ours(key, sum >= cost)
      if own > 0 then kept[#kept + 1] = struct.pack('<I7I7I2', when, sum - cost, own) .. text end
    end
    return function()
      if at == 0 then redis.call('DEL', key) else redis.call('LTRIM', key, 0, at - 1) end
      for i = 1, #kept, 1000 do redis.call('RPUSH', key, unpack(kept, i, math.min(i + 999, #kept))) end
      redis.call('PEXPIREAT', key, math.floor((now + window) / 1000) + 1)
    end
  end

  local length = redis.call('LLEN', key)
  local low, high = 0, length
  while low < high do
    local middle = math.floor((low + high) / 2)
    if read(redis.call('LINDEX', key, middle)) < charged_at then low = middle + 1 else high = middle end
  end
  local found
  for at = low, length - 1 do
    local when, _, own, text = read(redis.call('LINDEX', key, at))
    if when > charged_at then break end
    if own >= cost and text == note then found = at end
  end
  if found then return take(found) end
end

function algorithms.fw1(key, cost, charged_at, _, _, _, window)
  local state = redis.call('GET', key)
  if not state then return end
  local start, used = struct.unpack('<I7I6', state)
  ours(key, #state == 13 and start < 2 ^ 53)
  if start > charged_at or charged_at - start >= window then return end
  return write(key, struct.pack('<I7I6', start, math.max(0, used - cost)), 2 * window)
end

function algorithms.cw1(key, cost, charged_at, _, _, _, start, middle, ends)
  local state = redis.call('GET', key)
  if not state then return end
  local at, used = struct.unpack('<I7I6', state)
  ours(key, #state == 13 and at < 2 ^ 53)
  if at > charged_at then return end
  return write(key, struct.pack('<I7I6', at, math.max(0, used - cost)), middle == 0 and start or ends - start)
end

-- Neither what has come back since by itself is given back, nor, of a bucket that is overdrawn, what others who wait behind it
-- have been told to wait for. Of a charge in several steps the newest permits are given back first.
function algorithms.tb2(key, cost, charged_at, _, position, burst, permit, refill, tick)
  local state = redis.call('GET', key)
  if not state then return end
  local at, bucket = math.floor(now / tick), bucket_states()
  local last, charged, born, parts = bucket.read(key, state)
  if last > at then born = math.min(born, at * tick) end
  if charged_at < born or position > charged or not bucket.refill(parts, math.max(0, at - last)) then return end

  local changed = false
  for _, part in ipairs(parts) do
    local held, behind, from = cost, charged - position, position - cost
    for _, gap in ipairs(part.gaps) do
      held = held - math.max(0, math.min(gap[2], position) - math.max(gap[1], position - cost))
      behind = behind - math.max(0, gap[2] - math.max(gap[1], position))
    end
    if part.permit == permit and part.refill == refill and part.used > burst * permit then
      held = held - behind
      from = position - held
    end
    local back = math.min(part.used - behind * part.permit, held * part.permit)
    if back > 0 then
      part.used, changed = part.used - back, true
      bucket.add_gap(part, charged, from, position)
    end
  end
  if not changed then return end
  return write(key, bucket.write(at, charged, born, parts), (bucket.ticks(parts) + 1) * tick)
end

function algorithms.cc1(key, _, _, _, _, _, window, holder)
  if not redis.call('ZSCORE', key, holder) then return end
  return function()
    redis.call('ZREM', key, holder)
    redis.call('PEXPIREAT', key, math.floor((now + window) / 1000) + 1)
  end
end

local changes = {}
for i = 1, #KEYS do
  local a = 9 * i - 8
  local algorithm, args = ARGV[a], {}
  for n = 1, 8 do args[n] = ARGV[a + n] end
  for n = 1, 8 do
    if n ~= 7 or algorithm ~= 'sl1' and algorithm ~= 'cc1' then args[n] = args[n] + 0 end
  end
  changes[#changes + 1] = algorithms[algorithm](KEYS[i], unpack(args))
end
for _, change in ipairs(changes) do change() end
return {#changes}
