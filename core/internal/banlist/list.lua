-- Returns a page of the index of a rule's bans, in the order of the subjects.
--
-- KEYS[1]   as in add.lua
-- ARGV[1]   where to begin: -, or ( and a subject
-- ARGV[2]   how many subjects
-- reply     now (microseconds); then the subjects
local clock = redis.call('TIME')
local reply = redis.call('ZRANGE', KEYS[1], ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])
table.insert(reply, 1, clock[1] * 1000000 + clock[2])
return reply
