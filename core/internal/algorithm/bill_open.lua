-- Decides a call as decide.lua does and, if it passes, records a bill: what was charged may be changed
-- later, by bill_settle.lua.
--
-- The code before this defines now, and decide, a function of KEYS and ARGV that is decide.lua.
--
-- KEYS      those of decide, of one subject; behind them the bill
-- ARGV[1]   for how long the bill is kept (microseconds)
-- ARGV[2]   the number of counters
-- ARGV[3]   the cost, which is at least 1 and the same for all counters
-- ARGV      then those of decide
-- reply     decide's
-- state     of a bill: a string, little-endian: I7 when it is forgotten (microseconds); I1 1 if it is
--           settled, otherwise 0; I7 permits used, of a settled bill, and I7 how many of them exceeded the bound of a
--           debt, if some did. If it is not settled, I7 permits
--           charged for each counter; then for each addition, the oldest first, I7 when
--           (microseconds), and for each counter I7 permits charged and I7 position of the charge
-- keeps     a bill is forgotten when its time is over, and earlier if it is settled
local bill, count = KEYS[#KEYS], ARGV[2] + 0
local reply = decide({unpack(KEYS, 1, #KEYS - 1)}, {unpack(ARGV, 4)})

local refused, charged = false, false
for i = 1, #reply > 1 and count or 0 do
  refused, charged = refused or reply[4 * i - 2] > 0, charged or reply[4 * i] > 0
end
if charged and not refused then
  local record = struct.pack('<I7I1I7', now + ARGV[1], 0, 0) .. string.rep(struct.pack('<I7', ARGV[3]), count)
  redis.call('SET', bill, record, 'PXAT', math.floor((now + ARGV[1]) / 1000) + 1)
end
return reply
