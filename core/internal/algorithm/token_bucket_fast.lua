-- TokenBucket, alone on its calls, at half the cost of decide.lua. It decides over calls of one cost that were made together, first
-- come first served: as many are charged as fit.
--
-- KEYS[1]   the counter
-- ARGV[1]   little-endian: I7 units per permit, I7 units refilled per tick, I7 tick (microseconds), I7 units of the full bucket, I7
--           units of one call's cost, I7 units of all calls together
-- reply     a string: I7 now (microseconds), I7 the units used before, I7 zero, to be told from the other replies by its length. With
--           ticks of 1, to save the packing (5 to 8 % of all): where all are charged the state as written, whose tick is now; where
--           none fits the units used, an integer. -1: something is uncommon (another rate, a clock that stepped back, no state of
--           ours), nothing was done, and decide_equal.lua is to be asked
-- state     as in token_bucket.lua
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local state = redis.call('GET', KEYS[1])
local permit, refill, tick, full, cost, asked = struct.unpack('<I7I7I7I7I7I7', ARGV[1])
local at = now
if tick ~= 1 then at = (now - now % tick) / tick end

local used = 0
if state then
  local last, unit, rate
  last, used, unit, rate = struct.unpack('<I7I7I7I7', state)
  if unit ~= permit or rate ~= refill or last > at or used > 2 ^ 52 or #state ~= 28 then return -1 end
  used = used - (at - last) * refill
  if used < 0 then used = 0 end
end

local needed, all = used + asked, true
if needed > full then
  local calls = math.floor((full - used) / cost)
  if calls < 1 then return tick == 1 and used or struct.pack('<I7I7I7', now, used, 0) end
  needed, all = used + calls * cost, false
end
local charged = struct.pack('<I7I7I7I7', at, needed, permit, refill)
redis.call('SET', KEYS[1], charged, 'PXAT', string.format('%d', (at + needed / refill) * tick / 1000 + 1))
return all and tick == 1 and charged or struct.pack('<I7I7I7', now, used, 0)
