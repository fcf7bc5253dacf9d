-- SlidingLog: never more than max permits in any span of window microseconds, to the microsecond.
--
-- args      max, window (microseconds), note
-- state     see sliding_log_state.lua
local function read_gaps(key, extra, given)
  local count = extra and (#extra - 28) / 6 or 0
  ours(key, count % 1 == 0 and count <= 1000 and (count > 0 or given == 0))
  if count == 0 then return {total = 0, sizes = {}, sums = {}} end
  local sums = {struct.unpack('<' .. string.rep('I5', count), extra, 29 + count)}
  sums[count + 1] = nil -- unpack also returns where the text ends
  return {total = given, sizes = {string.byte(extra, 29, 28 + count)}, sums = sums}
end

local function pack_gaps(gaps, moved, moved_to)
  local head, count = struct.pack('<I7I7I7I7', 0, gaps.total, moved, moved_to), #gaps.sizes
  if gaps.total == 0 then return head end
  return head .. string.char(unpack(gaps.sizes)) .. struct.pack('<' .. string.rep('I5', count), unpack(gaps.sums))
end

-- Adds up the permits of entries until the sum is enough. Returns the sum and, if it is enough, the
-- time from which the last added entry counts.
local function add_up(key, from, to, enough, moved, moved_to)
  local permits = 0
  if from > to then return permits end
  for _, text in ipairs(redis.call('LRANGE', key, from, to)) do
    local when, _, own = read_entry(key, text, moved, moved_to)
    permits = permits + own
    if permits >= enough then return permits, when end
  end
  return permits
end

-- Returns the sum of the gaps behind the entry with this position. The first segment begins with
-- that entry.
local function gaps_behind(key, gaps, at, position, entry, length)
  local behind = {total = 0, sizes = {}, sums = {}}
  local i, _, to = segment_of(gaps.sizes, at)
  if not i then return behind end
  ours(key, to <= length)
  behind.sizes[1], behind.sums[1] = to - at, 0
  if gaps.sums[i] > 0 then
    local sum = select(2, entry(to - 1)) - position - add_up(key, at + 1, to - 1, math.huge, 0, 0)
    ours(key, sum >= 0 and sum <= gaps.sums[i])
    behind.sums[1] = sum
  end
  for segment = i + 1, #gaps.sizes do
    behind.sizes[segment - i + 1], behind.sums[segment - i + 1] = gaps.sizes[segment], gaps.sums[segment]
  end
  for _, sum in ipairs(behind.sums) do behind.total = behind.total + sum end
  return behind
end

-- Finds the entry whose end frees the last of the missing permits, and returns the time from which
-- it counts. If that entry is behind all segments, returns nil, the index where the segments end,
-- and the sum of their gaps.
local function freeing(key, gaps, first, before, missing, entry, moved, moved_to, length)
  local ends, gone = {[0] = first}, {[0] = 0}
  for i, size in ipairs(gaps.sizes) do ends[i], gone[i] = ends[i - 1] + size, gone[i - 1] + gaps.sums[i] end
  ours(key, ends[#ends] <= length)
  local function upto(i) return i > 0 and select(2, entry(ends[i] - 1)) - before - gone[i] or 0 end
  local low, high = 1, #ends + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if upto(middle) >= missing then high = middle else low = middle + 1 end
  end
  if low > #ends then return nil, ends[#ends], gone[#ends] end
  local _, when = add_up(key, ends[low - 1], ends[low] - 1, missing - upto(low - 1), moved, moved_to)
  ours(key, when)
  return when
end

algorithms.sl2 = function(key, now, cost, max, window, note)
  max, window = max + 0, window + 0
  local length, newest, highest, extra, given, moved, moved_to = read_log(key)

  local function entry(at) return read_entry(key, redis.call('LINDEX', key, at), moved, moved_to) end

  -- Returns the index of the first entry, from low on, whose time (field 1) or position (field 2)
  -- is above a bound.
  local function search(low, field, above)
    local high = length
    if field == 2 and low < high and select(2, entry(low)) > above then return low end -- the most common case
    while low < high do
      local middle = math.floor((low + high) / 2)
      if select(field, entry(middle)) > above then high = middle else low = middle + 1 end
    end
    return low
  end

  local first, used, before, position, lowest = 0, 0, 0, now, math.huge
  local gaps = nil -- the gaps behind the first entry that counts; read only if needed
  if length > 0 then
    local dead = math.max(newest, now) - window
    local when, upto, own = entry(0)
    if when <= dead then
      first = search(1, 1, dead)
      if first < length then when, upto, own = entry(first) end
    end
    if first < length then
      if given > 0 and first > 0 then
        gaps = gaps_behind(key, read_gaps(key, extra, given), first, upto, entry, length)
        given = gaps.total
      end
      position, lowest, before = highest, upto, upto - own
      used = position - before - given
      ours(key, newest > now - window and before >= 0 and used >= own)
    else
      given = 0
    end
  end

  local back = length > 0 and newest > now
  -- This may fail, so it comes before the first write.
  if back and given > 0 then gaps = gaps or read_gaps(key, extra, given) end
  local function keep()
    if first > 0 then redis.call('LTRIM', key, first, -1) end
    if back then
      moved, moved_to = position, now
    elseif moved < lowest then
      moved, moved_to = 0, 0
    end
    if given + moved == 0 then
      if extra then redis.call('LTRIM', key, 0, -2) end
    elseif first > 0 or back then -- otherwise the element stays as it is
      local text = pack_gaps(gaps or {total = 0, sizes = {}}, moved, moved_to)
      if extra then redis.call('LSET', key, -1, text) else redis.call('RPUSH', key, text) end
    end
  end

  -- The clock stepped back: everything that was used counts as used now, so no permits are created
  -- and nobody waits longer than one window.
  local anchored = nil
  if back then newest, anchored = now, keep end
  local reset = used > 0 and newest + window - now or 0

  local missing = used + cost - max
  if missing > 0 then
    local when, from, gone = now, first, 0
    if not back then
      when = nil
      if given > 0 then
        gaps = gaps or read_gaps(key, extra, given)
        when, from, gone = freeing(key, gaps, first, before, missing, entry, moved, moved_to, length)
      end
      if not when then
        local at = search(from, 2, before + gone + missing - 1)
        when = at < length and entry(at) or now -- even all entries free too few
      end
    end
    local wait = when + window - now
    ours(key, wait >= 1 and wait <= window)
    return {retry = wait, left = max - used, reset = reset, anchored = anchored}
  end
  local function append()
    if first > 0 or extra or back then keep() end
    local text = struct.pack('<I7I7I2', now, position + cost, cost) .. note
    if given + moved == 0 then
      redis.call('RPUSH', key, text)
    else
      redis.call('RPUSH', key, redis.call('LINDEX', key, -1))
      redis.call('LSET', key, -2, text)
    end
  end
  return {
    retry = 0, left = max - used, reset = reset, anchored = anchored, charged = append, charged_reset = window,
    position = position + cost,
  }
end
