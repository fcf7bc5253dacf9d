-- The state of a SlidingLog, for the scripts that change it.
--
-- Each entry has a position, so that bisection can find the first entry that counts and the entry
-- whose end lets a call pass.
--
-- The position of an entry is that of the entry before plus the cost of the call. If no entry
-- counts, it is the time plus the cost. When permits are given back, no position changes. So there
-- is a gap between two entries if the later position minus the later permits is higher than the
-- earlier position.
--
-- state     a list of the admitted calls, oldest first, each little-endian: I7 when (microseconds),
--           I7 position, I2 permits that it still holds; then the note. Entries that no longer
--           count stay until the next charge. While there are gaps, or the clock has stepped back,
--           the list has one more element at its end: I7 0; I7 sum of all gaps; I7 a position and
--           I7 a time: the entries up to that position count as of that time, because the clock
--           stepped back behind them. If there are gaps, the element goes on with the segments into
--           which it divides the list: for each I1 number of entries, then for each I5 sum of the
--           gaps before its entries. The first segment begins with the first entry, before which
--           there is no gap. A segment has at most 64 entries. Behind the last segment there are no
--           gaps
local segment_size = 64

local function ours(key, sound)
  if not sound then error('NOTACOUNTER ' .. key) end
end

-- Returns the time from which an entry counts, its position, its permits, and when it was admitted.
local function read_entry(key, text, moved, moved_to)
  local when, position, own = struct.unpack('<I7I7I2', text)
  if when == 0 or when >= 2 ^ 53 or position >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
  return position <= moved and moved_to or when, position, own, when
end

-- Returns the number of entries; the time from which the last one counts, and its position; then
-- the text of the element behind the entries, or nil, and its numbers: the sum of all gaps, the
-- position, the time. Returning a table with these names took Redis 2 to 3 % more instructions per
-- decision.
local function read_log(key)
  local length = redis.call('LLEN', key)
  if length == 0 then return 0, nil, nil, nil, 0, 0, 0 end
  local last = redis.call('LINDEX', key, length - 1)
  local when, position = struct.unpack('<I7I7I2', last)
  if when > 0 then
    ours(key, when < 2 ^ 53 and position < 2 ^ 53)
    return length, when, position, nil, 0, 0, 0
  end
  local _, given, moved, moved_to = struct.unpack('<I7I7I7I7', last)
  ours(key, length > 1 and given < 2 ^ 53 and moved_to < 2 ^ 53)
  when, position = read_entry(key, redis.call('LINDEX', key, length - 2), moved, moved_to)
  return length - 1, when, position, last, given, moved, moved_to
end

-- Returns the segment of an entry, the index of the segment's first entry, and the index behind its
-- last one. Returns nothing if the entry is behind all segments.
local function segment_of(sizes, at)
  local to = 0
  for i = 1, #sizes do
    to = to + sizes[i]
    if at < to then return i, to - sizes[i], to end
  end
end
