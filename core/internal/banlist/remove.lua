-- Removes a subject from the index of a rule's bans.
--
-- KEYS      as in add.lua
-- ARGV[1]   the subject
-- reply     1 if it was there, else 0
redis.call('ZREM', KEYS[2], ARGV[1])
return {redis.call('ZREM', KEYS[1], ARGV[1])}
