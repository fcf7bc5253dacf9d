-- Renews the mark of a server's memory, by which processes notice that it was lost.
--
-- KEYS[1]  the mark: "ID NUMBER SECONDS", where SECONDS is when it was renewed last
-- ARGV[1]  the ID of a new mark
-- ARGV[2]  the seconds after which a mark is renewed
--
-- The reply is the previous mark, or "" if there was none, and the mark now. A value that is not a
-- mark stays unchanged. NUMBER grows with each renewal, so a smaller number shows that renewals
-- were lost.
local was, now = redis.call('GET', KEYS[1]) or '', tonumber(redis.call('TIME')[1])
local id, number, at = string.match(was, '^(%x+) (%d+) (%d+)$')
if was == '' then
  id, number, at = ARGV[1], 0, 0
end
if not id or math.abs(now - at) < tonumber(ARGV[2]) then
  return {was, was}
end
local is = string.format('%s %d %d', id, number + 1, now)
redis.call('SET', KEYS[1], is)
return {was, is}
