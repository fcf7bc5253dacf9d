-- Notes that a threshold of a limit was reached, as algorithm.State.Note does.
--
-- KEYS[1]   the notice: for each limit that was reported "LIMIT ENDS "
-- ARGV[1]   the limit, without spaces
-- ARGV[2]   when its threshold may be reported again (microseconds)
-- ARGV[3]   the largest number of limits
-- reply     1 if this is new, and 0 if it was noted before, comes too late, or has no room
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
if ARGV[2] + 0 <= now then return 0 end
local noted, count, last = '', 0, ARGV[2] + 0
for limit, ends in string.gmatch(redis.call('GET', KEYS[1]) or '', '(%S+) (%d+) ') do
  if ends + 0 > now then
    if limit == ARGV[1] then return 0 end
    noted, count, last = noted .. limit .. ' ' .. ends .. ' ', count + 1, math.max(last, ends + 0)
  end
end
if count == ARGV[3] + 0 then return 0 end
redis.call('SET', KEYS[1], noted .. ARGV[1] .. ' ' .. ARGV[2] .. ' ', 'PXAT', math.ceil(last / 1000))
return 1
