-- FixedWindow, for a counter that is alone on its call, at half the cost of decide.lua. It decides
-- over calls of one cost that were made together: as many are charged as fit, first come first
-- served.
--
-- KEYS[1]   the counter
-- ARGV[1]   little-endian: I7 max, I7 window (microseconds), I7 cost of one call, I7 cost of all
-- reply     a string: I7 now (microseconds), I7 start of the window, I6 permits used in it before;
--           or -1 if a case is left to decide_equal.lua: the clock stepped back, or the value is no
--           state of ours. Then nothing was done
-- state     as in fixed_window.lua
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local state = redis.call('GET', KEYS[1])
local max, window, cost, asked = struct.unpack('<I7I7I7I7', ARGV[1])

local start, used = now, 0
if state then
  start, used = struct.unpack('<I7I6', state)
  if start > now or #state ~= 13 then return -1 end
  if used == 0 or now - start >= window then start, used = now, 0 end
end

local charge = asked
if used + asked > max then charge = math.floor((max - used) / cost) * cost end
if charge > 0 then
  redis.call('SET', KEYS[1], struct.pack('<I7I6', start, used + charge), 'PXAT', string.format('%d', (start + window) / 1000 + 1))
end
return struct.pack('<I7I7I6', now, start, used)
