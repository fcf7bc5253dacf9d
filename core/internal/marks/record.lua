-- Returns what is remembered of a subject's refusals: see strike.lua.
--
-- KEYS[1]   the strikes
-- ARGV[1]   the window (microseconds)
-- reply     windows in a row that count towards the next ban, and bans so far; empty if nothing is
--           remembered
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local state = redis.call('GET', KEYS[1])
if not state or #state ~= 38 then return {} end
local _, _, last, row, bans, seen, forgotten = struct.unpack('<I7I7I7I2I1I7I7', state)
if seen > now then last, forgotten = math.floor(now / ARGV[1]), forgotten - (seen - now) end
if forgotten <= now then return {} end
if math.floor(now / ARGV[1]) > last + 1 then row = 0 end
return {row, bans}
