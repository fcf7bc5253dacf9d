-- Removes subjects without an override from the index, unless they were entered again since.
--
-- KEYS      as in enter.lua
-- ARGV[1]   the shortest time for which an entry is kept (microseconds)
-- ARGV      then for each subject two: the subject, and when it was entered last (microseconds),
--           which was read before its override was looked for
-- reply     how many were removed
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local removed = 0
for i = 2, #ARGV - 1, 2 do
  local entered = redis.call('ZSCORE', KEYS[2], ARGV[i])
  if entered and entered + 0 == ARGV[i + 1] + 0 and now - entered > ARGV[1] + 0 then
    removed = removed + redis.call('ZREM', KEYS[1], ARGV[i])
    redis.call('ZREM', KEYS[2], ARGV[i])
  end
end
return {removed}
