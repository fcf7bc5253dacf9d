-- SlidingLog reduces the permits of the entry with the charge's position, or removes the entry.
-- This leaves a gap: see sliding_log_state.lua. A change that needs LREM comes first, because Redis
-- users that were set up for an earlier version lack the right to it.
--
-- Rewriting all later entries instead took Redis 5 ms for 10,000 of them, and 20 ms with notes.
-- LREM is used because no command removes an element by its index. It walks from the nearer end and
-- takes 10 to 14 ns for each entry. A refund takes 20 to 75 us at 10,000 entries. In the middle of
-- 10,000 entries with notes of 256 bytes it takes 97 us, 70 of them in LREM. Tombstones would pile
-- up where most calls are refunded, and a sorted set would take five times the memory.
algorithms.sl2 = function(key, now, charge, _, window)
  window = window + 0
  local cost, position = charge.cost, charge.position
  local length, newest, highest, extra, given, moved, moved_to = read_log(key)
  if length == 0 then return end
  local texts = {}
  local function entry(at)
    local text = texts[at] or redis.call('LINDEX', key, at)
    texts[at] = text
    return text, read_entry(key, text, moved, moved_to)
  end

  -- Each entry takes up at least one position, so the entry cannot be before this index. It is at
  -- this index if each call behind it took one permit and still holds it.
  if position > highest then return end
  local high, above, guesses = length - 1, highest, 0
  local at = math.max(0, high - (above - position))
  local _, _, lowest = entry(at)
  if position < lowest then return end
  if position == lowest then high = at end

  -- Otherwise the search makes a few guesses, as if permits were spread evenly, and then bisects.
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
  if found ~= position or admitted ~= charge.at or when <= math.max(newest, now) - window then return end
  local back = math.min(cost, own)

  -- The sums of the gaps stay packed, because few of them change.
  local count = extra and (#extra - 28) / 6 or 0
  ours(key, count % 1 == 0 and count <= 1000)
  local sizes, sums = count > 0 and {string.byte(extra, 29, 28 + count)} or {}, count > 0 and string.sub(extra, 29 + count) or ''

  -- Returns the segment of an entry, and the index of the segment's first entry. If the entry is
  -- behind all segments, adds segments up to it.
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
      return {change = function() redis.call('DEL', key) end, lives = window}
    end
    i = segment_of(sizes, at)
    if i then add(i, -gap(at, position, own)) end
    moved = math.min(moved, highest) -- the next call may get the position that is now free
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
      -- LREM removes the element that is empty: no other one is, and a short text is compared
      -- faster than a note.
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

  local function change()
    local failed = take()
    if failed then return failed end
    if given + moved > 0 then
      local rest = struct.pack('<I7I7I7I7', 0, given, moved, moved_to)
      if given > 0 then rest = rest .. string.char(unpack(sizes)) .. string.sub(sums, 1, 5 * #sizes) end
      if extra then redis.call('LSET', key, -1, rest) else redis.call('RPUSH', key, rest) end
    elseif extra then
      redis.call('LTRIM', key, 0, -2)
    end
  end
  return {change = change, lives = newest + window - now, first = needs_lrem}
end
