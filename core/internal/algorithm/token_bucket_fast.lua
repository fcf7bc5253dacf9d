-- TokenBucket, for a counter that is alone on its call, at half the cost of decide.lua. It decides
-- over calls of one cost that were made together: as many are charged as fit, first come first
-- served.
--
-- KEYS[1]   the counter
-- ARGV[1]   little-endian: I7 units per permit, I7 units refilled per tick, I7 tick (microseconds),
--           I7 units of the full bucket, I7 units of one call's cost, I7 units of all calls
--           together
-- reply     a string: I7 now (microseconds), I7 units used before, I7 position before. Two replies
--           save the packing (5 to 8 % of the script) if ticks are of 1: the state as written,
--           whose tick is now, if all calls are charged; the units used, as an integer, if none
--           fits. -1 if a case is left to decide_equal.lua: another rate or several, the clock
--           stepped back, or the value is no state of ours. Then nothing was done
-- state     as in token_bucket_state.lua; the gaps stay as they are
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local state = redis.call('GET', KEYS[1])
local permit, refill, tick, full, cost, asked = struct.unpack('<I7I7I7I7I7I7', ARGV[1])
local at = now
if tick ~= 1 then at = (now - now % tick) / tick end

local used, charged, born, gaps, tail = 0, nil, now, 0, ''
if state then
  local last, unit, rate
  last, used, unit, rate, charged, born, gaps = struct.unpack('<I7I7I7I7I7I7I1', state)
  if unit ~= permit or rate ~= refill or last > at or used > 2 ^ 52 or charged > 2 ^ 52 or born >= 2 ^ 53 or gaps > 64
    or #state ~= 43 + 14 * gaps then
    return -1
  end
  used = used - (at - last) * refill
  if used <= 0 then
    used, charged, born, gaps = 0, nil, now, 0
  elseif gaps > 0 then
    tail = string.sub(state, 44)
  end
end

charged = charged or now % 2 ^ 51
local needed, all = used + asked, true
if needed > full then
  local calls = math.floor((full - used) / cost)
  if calls < 1 then return tick == 1 and used or struct.pack('<I7I7I7', now, used, charged) end
  needed, all = used + calls * cost, false
end
local position = charged + (needed - used) / permit
if position > 2 ^ 52 then return -1 end
local written = struct.pack('<I7I7I7I7I7I7I1', at, needed, permit, refill, position, born, gaps)
if gaps > 0 then written = written .. tail end
redis.call('SET', KEYS[1], written, 'PXAT', string.format('%d', (at + needed / refill) * tick / 1000 + 1))
return all and tick == 1 and written or struct.pack('<I7I7I7', now, used, charged)
