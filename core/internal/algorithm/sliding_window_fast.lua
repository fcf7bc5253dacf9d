-- SlidingWindow, alone on its calls, at half the cost of decide.lua. It decides over calls of one
-- cost that were made together, first come first served: as many are charged as fit.
--
-- KEYS[1]   the counter
-- ARGV[1]   little-endian: I7 max, I7 window (microseconds), I7 cost of one call, I7 cost of all
-- reply     a string that begins with I1 1 if all are charged, otherwise 0, and I7 now
--           (microseconds). If all are charged: then I6 permits used before. Otherwise: then the
--           state as found. -1: something is uncommon (a clock that stepped back, no state of
--           ours), nothing was done, and decide_equal.lua is to be asked
-- state     as in sliding_window.lua
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local state = redis.call('GET', KEYS[1])
local max, window, cost, asked = struct.unpack('<I7I7I7I7', ARGV[1])
local phase = now % window
local part = phase * 32 / window
local index = (now - phase) / window * 32 + part - part % 1

local used, own, older = 0, 0, ''
if state then
  local charged
  charged, used, own = struct.unpack('<I7I6I6', state)
  if charged > index or own > used or #state % 6 ~= 1 then return -1 end
  if #state > 19 then older = string.sub(state, 20) end
  if charged < index then
    local keep = 1
    while keep < #older do
      local slot, permits = struct.unpack('<I1I5', older, keep)
      if charged - (charged - slot) % 64 >= index - 32 then break end
      used, keep = used - permits, keep + 6
    end
    if used < own then return -1 end
    if keep > 1 then older = string.sub(older, keep) end
    if charged < index - 32 then
      used = 0
    elseif own > 0 then
      older = older .. struct.pack('<I1I5', charged % 64, own)
    end
    own = 0
  end
end

local charge = asked
if used + asked > max then
  charge = math.floor((max - used) / cost) * cost
  if charge < cost then return struct.pack('<I1I7', 0, now) .. state end
end
redis.call('SET', KEYS[1], struct.pack('<I7I6I6', index, used + charge, own + charge) .. older,
  'PXAT', string.format('%d', (now + window + window / 32) / 1000 + 1))
if charge == asked then return struct.pack('<I1I7I6', 1, now, used) end
return struct.pack('<I1I7', 0, now) .. (state or '')
