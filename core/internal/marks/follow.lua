-- Returns what has changed since a process read the marks: see package marks.
--
-- KEYS[1]   the hash of the marks
-- KEYS[2]   the stream of the latest changes
-- ARGV[1]   the ID of the latest change that was read, or '' if there was none
-- ARGV[2]   how many changes to return at most
-- reply     the time (microseconds), the ID of the latest change, or '', the epoch of the hash, or '', 1 if
--           the stream has a change before the one with the ID, otherwise 0, and the changes from that on;
--           none if the ID is '' or the latest
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local latest, epoch = redis.call('HGET', KEYS[1], '@') or '', redis.call('HGET', KEYS[1], 'epoch') or ''
if latest == ARGV[1] or ARGV[1] == '' then return {now, latest, epoch, 0, {}} end
local before = #redis.call('XRANGE', KEYS[2], '-', '(' .. ARGV[1], 'COUNT', 1)
return {now, latest, epoch, before, redis.call('XRANGE', KEYS[2], ARGV[1], '+', 'COUNT', ARGV[2])}
