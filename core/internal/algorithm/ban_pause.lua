-- Pauses the calls that go out to a server, because it asked for that. The pause is a ban of the
-- subject: it lasts for a span from now, or until the ban in force ends, whichever is later. A
-- refusal counts as a ban, and is remembered after the pause; see ban_pause_over.lua.
--
-- KEYS[1]   the ban
-- ARGV      the span (microseconds), or 0 if the server named none; 1 if it refused a call, 0 if it
--           only announced the pause; the span of a first refusal without one, which doubles with
--           each refusal after the pause of the last one, and the longest span (microseconds)
-- reply     how long the pause lasts from now (microseconds); 1 if that is longer than before, else
--           0; now (microseconds)
-- keeps     a pause never becomes shorter, and refusals during a pause count once
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local span, refused, base, longest = ARGV[1] + 0, ARGV[2] == '1', ARGV[3] + 0, ARGV[4] + 0
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
if ends <= now then
  if span == 0 then span = math.min(base * 2 ^ math.min(bans, 40), longest) end
  if refused then bans = math.min(bans + 1, 255) end
end
local changed = 0
if now + span > ends then ends, changed = now + span, 1 end
forgotten = math.max(forgotten, refused and ends + longest or ends)
if forgotten > now then
  redis.call('SET', KEYS[1], struct.pack('<I7I7I2I1I7', ends, now, 0, bans, forgotten), 'PXAT', math.floor(forgotten / 1000) + 1)
end
return {math.max(0, ends - now), changed, now}
