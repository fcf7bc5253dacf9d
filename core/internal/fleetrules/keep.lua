-- Keeps the current version before another one replaces it. A version that is kept already is not kept
-- again.
--
-- KEYS[1]   the document
-- KEYS[2]   the list of versions that were replaced, the latest last
-- ARGV[1]   how many are kept
-- reply     1 if the version was added, otherwise 0
local found = redis.call('GETRANGE', KEYS[1], 0, -1)
if string.sub(found, 1, 4) ~= 'rd1 ' or redis.call('LINDEX', KEYS[2], -1) == found then return {0} end
redis.call('RPUSH', KEYS[2], found)
redis.call('LTRIM', KEYS[2], -ARGV[1], -1)
return {1}
