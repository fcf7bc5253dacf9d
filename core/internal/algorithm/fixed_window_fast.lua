-- FixedWindow, alone on its calls, at half the cost of decide.lua. It decides over calls of one cost
-- that were made together, first come first served: as many are charged as fit.
--
-- KEYS[1]   the counter
-- ARGV[1]   little-endian: I7 max, I7 window (microseconds), I7 cost of one call, I7 cost of all
-- reply     a string: I7 now (microseconds), I7 start of the window, I6 permits used in it before.
--           -1: something is uncommon (a clock that stepped back, no state of ours), nothing was
--           done, and decide_equal.lua is to be asked
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
