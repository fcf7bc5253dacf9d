-- Returns what has changed since a process has read the marks: see package marks.
--
-- KEYS[1]   the hash of the marks
-- KEYS[2]   the stream of the latest changes
-- ARGV[1]   the ID of the latest change that was read, or '' if there was none
-- ARGV[2]   how many changes to return at most
-- reply     the time (microseconds), the ID of the latest change, or '', and the changes from the one
--           with the ID on; none if that is the latest one
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local latest = redis.call('HGET', KEYS[1], '@') or ''
if latest == ARGV[1] or ARGV[1] == '' then return {now, latest, {}} end
return {now, latest, redis.call('XRANGE', KEYS[2], ARGV[1], '+', 'COUNT', ARGV[2])}
