-- Adds numbers of subjects to a rule's list of one minute, and keeps the subjects with the highest
-- numbers. If a list of sums is full, its lowest score is the floor, from which new subjects
-- continue.
--
-- KEYS[1]   the list: a sorted set of subjects by their scores
-- KEYS[2]   a sorted set of the rules that have lists, by the minute of the latest
-- ARGV[1]   the minute of the list, since the epoch
-- ARGV[2]   the name of the rule
-- ARGV[3]   INCR to add the numbers to those of the list, or GT to replace lower ones
-- ARGV[4]   the largest number of subjects
-- ARGV[5]   the largest number of rules
-- ARGV[6]   for how many minutes lists are kept
-- ARGV[7]   how many arguments follow
-- ARGV      for each subject two: the number, and the subject
-- reply     now (microseconds); then 1 if the numbers were added, 0 if there are too many rules, 2 if
--           this is another minute
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local minute = math.floor(now / 60000000)
if minute ~= ARGV[1] + 0 then return {now, 2} end
if not redis.call('ZSCORE', KEYS[2], ARGV[2]) and redis.call('ZCOUNT', KEYS[2], '-inf', '+inf') >= ARGV[5] + 0 then
  -- The lists of the least recently written rule may have expired.
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if oldest[2] + ARGV[6] > minute then return {now, 0} end
  redis.call('ZREM', KEYS[2], oldest[1])
end
redis.call('ZADD', KEYS[2], minute, ARGV[2])
if ARGV[3] == 'GT' then
  redis.call('ZADD', KEYS[1], 'GT', unpack(ARGV, 8, 7 + ARGV[7]))
else
  local floor
  if redis.call('ZCOUNT', KEYS[1], '-inf', '+inf') >= ARGV[4] + 0 then
    floor = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
  end
  for i = 8, 7 + ARGV[7], 2 do
    if not floor then
      redis.call('ZADD', KEYS[1], 'INCR', ARGV[i], ARGV[i + 1])
    elseif not redis.call('ZADD', KEYS[1], 'XX', 'INCR', ARGV[i], ARGV[i + 1]) then
      redis.call('ZADD', KEYS[1], floor + ARGV[i], ARGV[i + 1])
    end
  end
end
local excess = redis.call('ZCOUNT', KEYS[1], '-inf', '+inf') - ARGV[4]
if excess > 0 then redis.call('ZREM', KEYS[1], unpack(redis.call('ZRANGE', KEYS[1], 0, excess - 1))) end
local ends = (minute + ARGV[6]) * 60000
redis.call('PEXPIREAT', KEYS[1], ends)
redis.call('PEXPIREAT', KEYS[2], ends)
return {now, 1}
