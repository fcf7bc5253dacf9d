-- Returns a page of the index, in the order of the subjects.
--
-- KEYS      as in enter.lua
-- ARGV[1]   where to begin: -, or ( and a subject
-- ARGV[2]   how many subjects
-- reply     now (microseconds); then for each subject two: the subject, and when it was entered
--           last (microseconds)
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local reply = {now}
for _, subject in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])) do
  local entered = redis.call('ZSCORE', KEYS[2], subject)
  if not entered then
    -- The other set was removed by hand, so the age of the entry is unknown.
    redis.call('ZADD', KEYS[2], now, subject)
    entered = now
  end
  reply[#reply + 1], reply[#reply + 2] = subject, entered + 0
end
return reply
