-- Bans a subject by hand, from now on for a span, or for as long as the ban in force lasts.
--
-- KEYS[1]   the ban
-- ARGV[1]   the span (microseconds)
-- reply     a list of one: how long the ban lasts from now (microseconds)
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local span = ARGV[1] + 0
local ends, strikes, bans = 0, 0, 0
local state = redis.call('GET', KEYS[1])
if state then
  local last
  ends, last, strikes, bans = struct.unpack('<I7I7I2I1', state)
  if #state ~= 17 or last >= 2 ^ 53 then error('NOTACOUNTER ' .. KEYS[1]) end
  ends = math.max(0, ends - math.max(0, last - now))
end
ends = math.max(ends, now + span)
redis.call('SET', KEYS[1], struct.pack('<I7I7I2I1', ends, now, strikes, bans), 'PXAT', math.floor((ends + span) / 1000) + 1)
return {ends - now}
