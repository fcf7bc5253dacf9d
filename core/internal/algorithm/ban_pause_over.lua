-- Forgets the refusals before a pause, because the server has answered a call after it.
--
-- KEYS[1]   the ban
-- reply     empty
-- keeps     a pause or a ban in force stays
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local state = redis.call('GET', KEYS[1])
if not state then return {} end
local ends, last, _, _, forgotten = struct.unpack('<I7I7I2I1I7', state)
if #state ~= 24 or last >= 2 ^ 53 or ends > forgotten or forgotten >= 2 ^ 53 then error('NOTACOUNTER ' .. KEYS[1]) end
if ends - math.max(0, last - now) <= now then redis.call('DEL', KEYS[1]) end
return {}
