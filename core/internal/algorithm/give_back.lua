-- Gives back what one call was charged, as far as it still counts. It goes behind sliding_log.lua
-- and token_bucket_state.lua.
--
-- KEYS[i]   the counters, all in one cluster slot, each once
-- ARGV      eight for each counter: algorithm, permits to give back, when they were charged
--           (microseconds: the first number of that reply), the position of that reply, and the
--           algorithm's args, padded to four
-- reply     a list of one: how many counters were changed
-- keeps     what other calls used stays used; if LREM is needed and not permitted, nothing is changed
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- The algorithms below return a function that makes the change, or nil if nothing counts any more.
-- The functions are called when the states of all counters have been read and found sound.
local function write(key, state, lives)
  return function() redis.call('SET', key, state, 'PXAT', math.floor((now + lives) / 1000) + 1) end
end

function algorithms.sw1(key, cost, charged_at, _, _, window)
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

-- Reduces the permits of the entry with that position, or removes it. This leaves a gap: see
-- sliding_log.lua. The second result reports whether the change needs the right to LREM, which the
-- users of earlier versions do not have.
function algorithms.sl2(key, cost, charged_at, position, _, window)
  local length, newest, highest, extra, given, moved, moved_to = read_log(key)
  if length == 0 then return end
  local texts = {}
  local function entry(at)
    local text = texts[at] or redis.call('LINDEX', key, at)
    texts[at] = text
    return text, read_entry(key, text, moved, moved_to)
  end

  -- Each entry takes up at least one position, so it cannot stand before this place. There it
  -- stands if all calls behind it took one permit, and have it still.
  if position > highest then return end
  local high, above, guesses = length - 1, highest, 0
  local at = math.max(0, high - (above - position))
  local _, _, lowest = entry(at)
  if position < lowest then return end
  if position == lowest then high = at end

  -- Otherwise a few guesses follow that take permits to be spread evenly, and then a bisection.
  while at < high do
    local skip = math.max(0, high - at - (above - position))
    at, lowest = at + skip, lowest + skip
    skip = math.max(0, high - at - (position - lowest))
    high, above = high - skip, above - skip
    if at >= high then break end
    local middle = math.floor((at + high) / 2)
    if guesses < 4 and above > lowest then
      middle = math.floor(at + (high - at) * (position - lowest) / (above - lowest))
    end
    middle, guesses = math.max(at, math.min(middle, high - 1)), guesses + 1
    local _, _, found = entry(middle)
    if found < position then at, lowest = middle + 1, found + 1 else high, above = middle, found end
  end
  if at > high then return end
  local text, when, found, own, admitted = entry(at)
  if found ~= position or admitted ~= charged_at or when <= math.max(newest, now) - window then return end
  local back = math.min(cost, own)

  -- The sums of the gaps stay packed, because few of them change.
  local count = extra and (#extra - 28) / 6 or 0
  ours(key, count % 1 == 0 and count <= 1000)
  local sizes, sums = count > 0 and {string.byte(extra, 29, 28 + count)} or {}, count > 0 and string.sub(extra, 29 + count) or ''

  -- Returns the segment of an entry, and the place of its first entry. If the entry is behind all
  -- segments, it adds segments up to there.
  local function segment(place)
    local covered = 0
    for i = 1, #sizes do
      covered = covered + sizes[i]
      if place < covered then return i, covered - sizes[i] end
    end
    local last, more = #sizes, place + 1 - covered
    if last > 0 then
      local room = math.min(more, segment_size - sizes[last])
      sizes[last], more = sizes[last] + room, more - room
    end
    sums = sums .. string.rep('\0', 5 * math.ceil(more / segment_size))
    while more > 0 do
      last = last + 1
      sizes[last] = math.min(more, segment_size)
      more = more - sizes[last]
    end
    return last, place + 1 - sizes[last]
  end

  -- Adds to the gaps of a segment.
  local function add(i, permits)
    local sum = struct.unpack('<I5', sums, 5 * i - 4) + permits
    given = given + permits
    ours(key, sum >= 0 and sum < 2 ^ 40 and given >= 0)
    sums = string.sub(sums, 1, 5 * i - 5) .. struct.pack('<I5', sum) .. string.sub(sums, 5 * i + 1)
  end

  -- Joins a segment and the next one, if both fit into one.
  local function join(i)
    if i < 1 or i >= #sizes or sizes[i] + sizes[i + 1] > segment_size then return end
    sizes[i] = sizes[i] + table.remove(sizes, i + 1)
    local sum = struct.unpack('<I5', sums, 5 * i - 4) + struct.unpack('<I5', sums, 5 * i + 1)
    sums = string.sub(sums, 1, 5 * i - 5) .. struct.pack('<I5', sum) .. string.sub(sums, 5 * i + 6)
  end

  -- Returns the gap before an entry.
  local function gap(place, upto, permits)
    if given == 0 then return 0 end
    return upto - permits - select(3, entry(place - 1))
  end

  local take, i, needs_lrem
  if own > back then
    if at > 0 then add(segment(at), back) end
    take = function() redis.call('LSET', key, at, struct.pack('<I7I7I2', admitted, position, own - back) .. string.sub(text, 17)) end
  elseif at == length - 1 then
    if at > 0 then _, newest, highest = entry(at - 1) end
    if at == 0 or newest <= now - window then
      return function() redis.call('DEL', key) end
    end
    i = segment_of(sizes, at)
    if i then add(i, -gap(at, position, own)) end
    moved = math.min(moved, highest) -- the next call may get the position that is free now
    take = function()
      redis.call('LTRIM', key, 0, at - 1)
      extra = nil
    end
  elseif at == 0 then
    i = segment_of(sizes, 0)
    local second = segment_of(sizes, 1)
    if second then
      local _, _, next_position, next_own = entry(1)
      add(second, -gap(1, next_position, next_own))
    end
    take = function() redis.call('LTRIM', key, 1, -1) end
  else
    -- The gap before the entry becomes part of the gap before the next one.
    local behind, from = segment(at + 1)
    i = at >= from and behind or behind - 1
    if i ~= behind then
      local before = gap(at, position, own)
      add(i, -before)
      add(behind, before)
    end
    add(behind, own)
    needs_lrem = true
    take = function()
      -- LREM walks there from the nearer end. It compares a short text faster than a note, and no
      -- other element is empty.
      redis.call('LSET', key, at, '')
      local removed = redis.pcall('LREM', key, 2 * at < length and 1 or -1, '')
      if removed == 1 then return end
      redis.call('LSET', key, at, text)
      return {err = removed.err .. ' (LREM)'}
    end
  end
  if i then
    sizes[i] = sizes[i] - 1
    join(i)
    join(i - 1)
    if sizes[#sizes] == 0 then sizes[#sizes] = nil end
  end

  return function()
    -- This comes first because it needs no memory. A Redis whose memory is full denies the first
    -- write of a script if it may need some, but not later ones.
    redis.call('PEXPIREAT', key, math.floor((newest + window) / 1000) + 1)
    local failed = take()
    if failed then return failed end
    if given + moved > 0 then
      local rest = struct.pack('<I7I7I7I7', 0, given, moved, moved_to)
      if given > 0 then rest = rest .. string.char(unpack(sizes)) .. string.sub(sums, 1, 5 * #sizes) end
      if extra then redis.call('LSET', key, -1, rest) else redis.call('RPUSH', key, rest) end
    elseif extra then
      redis.call('LTRIM', key, 0, -2)
    end
  end, needs_lrem
end

function algorithms.fw1(key, cost, charged_at, _, _, window)
  local state = redis.call('GET', key)
  if not state then return end
  local start, used = struct.unpack('<I7I6', state)
  ours(key, #state == 13 and start < 2 ^ 53)
  if start > charged_at or charged_at - start >= window then return end
  return write(key, struct.pack('<I7I6', start, math.max(0, used - cost)), 2 * window)
end

function algorithms.cw1(key, cost, charged_at, _, _, start, middle, ends)
  local state = redis.call('GET', key)
  if not state then return end
  local at, used = struct.unpack('<I7I6', state)
  ours(key, #state == 13 and at < 2 ^ 53)
  if at > charged_at then return end
  return write(key, struct.pack('<I7I6', at, math.max(0, used - cost)), middle == 0 and start or ends - start)
end

-- Permits that have come back by themselves are not given back. If the bucket is overdrawn, neither
-- are those that later reservations wait for, because their waits were already announced. A charge
-- that is given back in several steps loses its newest permits first.
function algorithms.tb2(key, cost, charged_at, position, burst, permit, refill, tick)
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

function algorithms.cc1(key, _, _, _, _, window, holder)
  if not redis.call('ZSCORE', key, holder) then return end
  return function()
    redis.call('ZREM', key, holder)
    redis.call('PEXPIREAT', key, math.floor((now + window) / 1000) + 1)
  end
end

local changes = {}
for i = 1, #KEYS do
  local a = 8 * i - 7
  local algorithm, args = ARGV[a], {}
  for n = 1, 7 do
    args[n] = ARGV[a + n]
    if n ~= 6 or algorithm ~= 'sl2' and algorithm ~= 'cc1' then args[n] = args[n] + 0 end
  end
  local change, needs_lrem = algorithms[algorithm](KEYS[i], unpack(args))
  if change then table.insert(changes, needs_lrem and 1 or #changes + 1, change) end
end
for _, change in ipairs(changes) do -- those that need LREM come first
  local failed = change()
  if failed then return failed end
end
return {#changes}
