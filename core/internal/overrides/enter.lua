-- Enters a subject into the index of a rule's overrides, before its override is written.
--
-- KEYS[1]   a sorted set of all subjects with the score 0, so that it is sorted by subject
-- KEYS[2]   a sorted set of all subjects by the time of their last entry (microseconds)
-- ARGV[1]   the subject
-- ARGV[2]   the largest number of subjects
-- ARGV[3]   when the override ends (microseconds), or 0 if it does not
-- reply     now (microseconds); then 1 if the subject is entered, 0 if there are too many already,
--           2 if the override has ended
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local ends = ARGV[3] + 0
if ends > 0 and ends <= now then return {now, 2} end
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCOUNT', KEYS[1], '-inf', '+inf') >= ARGV[2] + 0 then
  return {now, 0}
end
redis.call('ZADD', KEYS[1], 0, ARGV[1])
redis.call('ZADD', KEYS[2], now, ARGV[1])
return {now, 1}
