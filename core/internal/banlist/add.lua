-- Enters subjects into the index of a rule's bans, and removes some whose bans have ended.
--
-- KEYS[1]   a sorted set of all subjects with the score 0, so that it is sorted by subject
-- KEYS[2]   a sorted set of all subjects by the end of their bans (microseconds)
-- ARGV[1]   the largest number of subjects; beyond that, those whose bans end first are removed
-- ARGV[2]   how long an entry stays after its ban has ended (microseconds), because the clocks of
--           the servers of a cluster differ
-- ARGV      then for each subject two: when its ban ends (microseconds), and the subject
-- reply     how many subjects there are
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local kept = ARGV[2] + 0
local subjects, ends = {}, {}
for i = 3, #ARGV - 1, 2 do
  local n = #subjects
  subjects[n + 1], subjects[n + 2] = 0, ARGV[i + 1]
  ends[n + 1], ends[n + 2] = ARGV[i], ARGV[i + 1]
end
redis.call('ZADD', KEYS[1], unpack(subjects))
redis.call('ZADD', KEYS[2], 'GT', unpack(ends))

-- A call removes more subjects than it adds, so that ended bans do not pile up, but no more than it
-- has time for.
local most = #subjects / 2 + 10
local function remove(gone)
  if #gone > 0 then
    redis.call('ZREM', KEYS[1], unpack(gone))
    redis.call('ZREM', KEYS[2], unpack(gone))
  end
end
remove(redis.call('ZRANGE', KEYS[2], '-inf', now - kept, 'BYSCORE', 'LIMIT', 0, most))
local count = redis.call('ZCOUNT', KEYS[2], '-inf', '+inf')
local over = math.min(count - ARGV[1], most)
if over > 0 then
  remove(redis.call('ZRANGE', KEYS[2], 0, over - 1))
  count = count - over
end
local all = redis.call('ZCOUNT', KEYS[1], '-inf', '+inf')
if all > count then
  -- The other set was removed by hand or evicted. Without this, subjects without an end would stay
  -- forever.
  local from = now % all
  for _, subject in ipairs(redis.call('ZRANGE', KEYS[1], from, from + 19)) do
    if not redis.call('ZSCORE', KEYS[2], subject) then redis.call('ZREM', KEYS[1], subject) end
  end
end
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
if last then
  for i = 1, 2 do redis.call('PEXPIREAT', KEYS[i], math.floor((last + kept) / 1000) + 1) end
end
return {count}
