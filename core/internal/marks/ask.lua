-- Returns the marks of a subject and of its networks: see package marks.
--
-- KEYS[1]   the hash of the marks
-- ARGV      how many fields follow; the fields of the marks
-- reply     the time (microseconds), and each mark as it is stored, or false
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
return {now, unpack(redis.call('HMGET', KEYS[1], unpack(ARGV, 2, 1 + ARGV[1])))}
