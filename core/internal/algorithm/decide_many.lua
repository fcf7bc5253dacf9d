-- Decides over many calls on different counters, each call by itself, as decide_fast.lua or
-- decide_equal.lua would. Calls of one form stand together: with counters of the same limits and
-- costs, in the same order. A call can stand for several equal ones, as in decide_fast.lua.
--
-- KEYS      the counters of the first call, then those of the next, and so on; no key twice. None:
--           nothing is decided
-- ARGV      for each form: how many calls it has, how many counters each of them has, and then two
--           for each counter: the algorithm, and the args of its fast function, as in
--           decide_fast.lua
-- reply     for each counter. If it is the only one of its call: as its fast function's. Otherwise
--           a string: I7 now (microseconds), and the state as found. -1: its call has to be decided
--           by itself, and nothing was done for it
-- keeps     what decide.lua keeps. Nothing is written before all is decided, and no write can fail
--           by what a key holds
if #KEYS == 0 then return {} end
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local states = redis.call('MGET', unpack(KEYS))
local replies, written, expires = {}, {}, {}

-- Decides over one call with several counters, the first of which has this place in KEYS.
local function decide_several(first, counters)
  local fit
  local function look(calls)
    for i, c in ipairs(counters) do
      local at = first + i - 1
      local reply, fits
      reply, fits, written[at], expires[at] = c.decide(states[at], now, calls * c[2], unpack(c, 2, 6))
      if reply == -1 then return false end
      fit = math.min(fit or calls, fits or 0)
    end
    return true
  end

  local calls = counters[1][1] / counters[1][2]
  local common = look(calls)
  if common and fit > 0 and fit < calls then look(fit) end
  for i = 1, #counters do
    local at = first + i - 1
    -- MGET finds nothing where a key holds another type.
    if common and fit > 0 and not states[at] then common = not redis.pcall('GET', KEYS[at]) end
    replies[at] = struct.pack('<I7', now) .. (states[at] or '')
  end
  for at = first, first + #counters - 1 do
    if not common then replies[at] = -1 end
    if not common or fit == 0 then written[at] = nil end
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
