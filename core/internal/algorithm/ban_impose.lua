-- Bans a subject by hand, for a span from now or until the ban in force ends, whichever is later.
-- Earlier bans are not forgotten any sooner. The count of strikes in a row restarts at 0.
--
-- KEYS[1]   the ban
-- ARGV[1]   the span (microseconds)
-- reply     how long the ban lasts from now (microseconds); 1 if that is longer than before, else 0;
--           now (microseconds)
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local span = ARGV[1] + 0
local ends, bans, forgotten = 0, 0, 0
local state = redis.call('GET', KEYS[1])
if state then
  local last, _
  ends, last, _, bans, forgotten = struct.unpack('<I7I7I2I1I7', state)
  if #state ~= 24 or last >= 2 ^ 53 or ends > forgotten or forgotten >= 2 ^ 53 then error('NOTACOUNTER ' .. KEYS[1]) end
  local back = math.max(0, last - now)
  ends, forgotten = math.max(0, ends - back), math.max(0, forgotten - back)
  if forgotten <= now then bans = 0 end
end
local changed = 0
if now + span > ends then ends, changed = now + span, 1 end
forgotten = math.max(forgotten, ends)
redis.call('SET', KEYS[1], struct.pack('<I7I7I2I1I7', ends, now, 0, bans, forgotten), 'PXAT', math.floor(forgotten / 1000) + 1)
return {ends - now, changed, now}
