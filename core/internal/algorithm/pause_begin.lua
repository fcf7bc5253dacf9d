-- Begins a pause, or makes it longer: it lasts for a span from now, or until the pause in force
-- ends, whichever is later. Refusals are remembered after the pause; see pause_over.lua.
--
-- KEYS[1]   the pause
-- ARGV      the span (microseconds), or 0 if the server named none; 1 if it refused a call, 0 if it
--           only announced the pause; the span of a first refusal without one, which doubles with
--           each refusal after the pause of the last one, and the longest span (microseconds); for
--           an operator's pause what the state says about the operator, otherwise ''
-- reply     how long the pause lasts from now (microseconds); 1 if that is longer than before, else
--           0; now (microseconds)
-- keeps     a pause never becomes shorter, and refusals during a pause count once
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local span, refused, base, longest = ARGV[1] + 0, ARGV[2] == '1', ARGV[3] + 0, ARGV[4] + 0
local p = read_pause(KEYS[1], now)
if p.forgotten <= now then p.refusals = 0 end
if p.ends <= now then
  if span == 0 then span = math.min(base * 2 ^ math.min(p.refusals, 40), longest) end
  if refused then p.refusals = math.min(p.refusals + 1, 255) end
end
local longer = 0
if now + span > p.ends then p.ends, p.by, longer = now + span, ARGV[5], 1 end
p.forgotten = math.max(p.forgotten, refused and p.ends + longest or p.ends)
if p.forgotten > now then redis.call('SET', KEYS[1], pack_pause(p, now), 'PXAT', math.floor(p.forgotten / 1000) + 1) end
return {math.max(0, p.ends - now), longer, now}
