-- Returns the time of the server that has a key.
--
-- KEYS[1]   the key
-- reply     now (microseconds)
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
return {now}
