-- Decides many calls on different counters, each as decide_fast.lua or decide_equal.lua would.
-- A call can stand for several equal ones, as in decide_fast.lua. Two calls have the same form
-- if their counters have the same limits and costs, in the same order. Calls of one form stand
-- together.
--
-- KEYS      the counters of the first call, then those of the next, and so on; no key twice
-- ARGV      for each form: the number of calls, the number of counters of each call, and then for
--           each counter its algorithm and the args of its fast function, as in decide_fast.lua.
--           Without any arguments, the script does nothing, and the reply is empty
-- reply     one element for each counter. The only counter of a call: the fast function's reply.
--           One of several: a string of I7 now (microseconds) and the state as found. -1: nothing
--           was done for its call, which has to be decided by itself
-- keeps     what decide.lua keeps. Nothing is written before everything is decided, and no write
--           fails, whatever a key holds
if #ARGV == 0 then return {} end
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local states = redis.call('MGET', unpack(KEYS))
local replies, written, expires = {}, {}, {}

-- Decides a number of equal calls on each of their counters. The first counter is KEYS[first].
-- Returns how many calls fit into all counters, or nil if the case of any counter is uncommon.
local function look(first, counters, calls)
  local fit = calls
  for i = 1, #counters do
    local c, at = counters[i], first + i - 1
    local reply, fits
    reply, fits, written[at], expires[at] = c.decide(states[at], now, calls * c[2], c[2], c[3], c[4], c[5], c[6])
    if reply == -1 then return nil end
    fit = math.min(fit, fits or 0)
  end
  return fit
end

-- Decides one call with several counters.
local function decide_several(first, counters)
  local last, calls = first + #counters - 1, counters[1][1] / counters[1][2]
  local fit = look(first, counters, calls)
  if fit and fit > 0 and fit < calls then fit = look(first, counters, fit) end
  for at = first, last do
    -- For a key of another type, MGET returns nil as if there were no key, but GET returns an
    -- error. Then the call is left to a script of its own, which fails even if another counter
    -- refuses.
    if fit and not states[at] and redis.pcall('GET', KEYS[at]) then fit = nil end
  end
  for at = first, last do
    replies[at] = fit and struct.pack('<I7', now) .. (states[at] or '') or -1
    if not fit or fit == 0 then written[at] = nil end
  end
end

local at, arg = 1, 1
while at <= #KEYS do
  local calls, count = ARGV[arg] + 0, ARGV[arg + 1] + 0
  local last = at + calls * count - 1
  if count == 1 then
    local decide = fast[ARGV[arg + 2]]
    local asked, cost, a, b, c, d = struct.unpack('<I7I7I7I7I7I7', ARGV[arg + 3])
    for i = at, last do
      local _
      replies[i], _, written[i], expires[i] = decide(states[i], now, asked, cost, a, b, c, d)
    end
  else
    local counters = {}
    for i = 1, count do
      counters[i] = {struct.unpack('<I7I7I7I7I7I7', ARGV[arg + 2 * i + 1])}
      counters[i].decide = fast[ARGV[arg + 2 * i]]
    end
    for first = at, last, count do decide_several(first, counters) end
  end
  at, arg = last + 1, arg + 2 + 2 * count
end

for i = 1, #KEYS do
  if not written[i] then -- nothing was charged
  elseif states[i] then
    redis.call('SET', KEYS[i], written[i], 'PXAT', expires[i])
  elseif not redis.call('SET', KEYS[i], written[i], 'PXAT', expires[i], 'NX') then
    replies[i] = -1
  end
end
return replies
