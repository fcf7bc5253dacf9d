-- Returns the time of the server that has the lists.
--
-- KEYS[1]   any key of the lists
-- reply     now (microseconds)
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
return {now}
