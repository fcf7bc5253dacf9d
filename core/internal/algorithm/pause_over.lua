-- Forgets the refusals before a pause, because the server has answered a call after it.
--
-- KEYS[1]   the pause
-- reply     empty
-- keeps     a pause in force stays
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
if read_pause(KEYS[1], now).ends <= now then redis.call('DEL', KEYS[1]) end
return {}
