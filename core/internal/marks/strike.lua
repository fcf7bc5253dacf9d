-- Counts that a subject was refused, and bans it when that has happened in a number of consecutive
-- windows. Each further ban lasts twice as long. A window counts once, whoever reports it and how late.
--
-- KEYS[1]   a string, little-endian: I7 begin and I7 end of the last ban, I7 latest window that counts,
--           I2 windows in a row that count, I1 bans so far, I7 the latest strike, I7 when all of this is
--           forgotten. Times are in microseconds.
-- ARGV      when the subject was refused; the window; after how many windows in a row it
--           is banned; how long for the first time, and how long at most. Times are in microseconds.
-- reply     begin and end of the last ban, 0 if there was none, bans so far, the time (microseconds)
-- keeps     a ban ends before it is forgotten
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local at, window, after, span, longest = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0
local begin, ends, last, row, bans, seen, forgotten = 0, 0, 0, 0, 0, 0, 0
local state = redis.call('GET', KEYS[1])
if state then
  if #state ~= 38 then error('NOTACOUNTER ' .. KEYS[1]) end
  begin, ends, last, row, bans, seen, forgotten = struct.unpack('<I7I7I7I2I1I7I7', state)
  if forgotten >= 2 ^ 53 or ends > forgotten then error('NOTACOUNTER ' .. KEYS[1]) end
  if seen > now then
    -- The clock stepped back: a ban lasts as long as it would have.
    local back = seen - now
    begin, ends, forgotten = math.max(0, begin - back), math.max(0, ends - back), math.max(0, forgotten - back)
    last = math.floor(now / window)
  end
  if forgotten <= now then begin, ends, last, row, bans, seen, forgotten = 0, 0, 0, 0, 0, 0, 0 end
end
at = math.min(at, now)
local this, counts = math.floor(at / window), true
if at < ends then
  counts = false
elseif this > last then
  row = row > 0 and this == last + 1 and row + 1 or 1
  last = this
elseif row > 0 and this == last - row then
  row = row + 1
else
  counts = false
end
if counts and row >= after then
  begin, ends = at, at + math.min(span * 2 ^ math.min(bans, 40), longest)
  row, bans = 0, math.min(bans + 1, 255)
end
if counts then forgotten = math.max(forgotten, math.max(ends, at) + longest) end
if counts or seen > now then
  redis.call('SET', KEYS[1], struct.pack('<I7I7I7I2I1I7I7', begin, ends, last, row, bans, now, forgotten), 'PXAT', math.floor(forgotten / 1000) + 1)
end
return {begin, ends, bans, now}
