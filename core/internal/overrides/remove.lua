-- Removes an override. Its subject stays in the index for a while, because another process may be
-- about to write a new one.
--
-- KEYS[1]   the override
-- reply     now (microseconds), and the override, if there was one; '' if it was no string
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local before = redis.pcall('GET', KEYS[1])
if type(before) == 'table' then
  if string.sub(before.err, 1, 9) ~= 'WRONGTYPE' then return before end
  before = ''
end
redis.call('DEL', KEYS[1])
return {now, before or nil}
