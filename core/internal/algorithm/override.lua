-- Decides as its driver does, after applying the overrides that operators may have set in place of
-- the limits of some rules.
--
-- The driver is decide.lua, decide_equal.lua for calls by one rule, decide_up_to.lua, charge.lua or
-- token_bucket_reserve.lua. It is a function here, and receives KEYS and ARGV as the overrides
-- leave them. A rule's own limit gets the numbers of its override. A counter that the override
-- takes out of the decision is decided by an algorithm that lets every call pass and keeps nothing.
--
-- KEYS[i]   the counters, and behind them the overrides, all in one cluster slot
-- ARGV[1]   the number of overrides
-- ARGV      three for each override: ALGORITHM:WINDOW of the rule's own limit, the largest Max of
--           that algorithm, and 1 if it has a burst
-- ARGV      three for each counter: the override of its rule (0: its rule has none), 1 if it has
--           the rule's own limit, and 1 if it counts only if an override limits the subject
-- ARGV      what the driver takes. For decide.lua, a cost above 2^52 is the largest that fits all
--           limits of its rule
-- reply     what the driver replies, and four for each override: what it is (0: there is none, 1 a
--           limit, 2 unlimited, 3 blocked, 4 made for another algorithm or window, 5 not written by
--           this library), when it ends (microseconds), Max and burst. If the call is refused by an
--           override, or by a cost above a limit in force, or if no counter is left, the driver's
--           part is now, followed by zeros (of decide_equal.lua, ''), and nothing was done
-- keeps     an override is only read here. An invalid one is treated as absent
-- state     override.go has the form of an override
--
-- The scripts of rules without overrides keep their text, and with it their name and speed. A cache
-- in the process would be faster, but would let a blocked subject through until it is refreshed.
-- Calls of rules with overrides are neither joined with calls on other keys nor remembered. Calls
-- of one caller take 1.5 to 1.9 times as long, and those of 256 callers of 10,000 subjects 3 to 3.7
-- times. Equal calls by one rule are merged: calls of 256 callers of one subject took 13 times as
-- long before, and 1.5 times now.
--
-- The code before this defines now (microseconds since the epoch), the driver, its name, head and
-- lead. head is the number of its args before those of the first counter, which begin with the
-- algorithm. lead is the number of values in its reply before those of the first counter. For a
-- reservation, patience stands in place of the algorithm.
local count = ARGV[1] + 0
local total, keys, args = #KEYS - count, {}, {}
local roles = 2 + 3 * count -- the place in ARGV of the first counter's three
for i = 1, total do keys[i] = KEYS[i] end
for i = roles + 3 * total, #ARGV do args[#args + 1] = ARGV[i] end

algorithms.off = function() return {retry = 0, left = 0, reset = 0} end

-- Reports whether the numbers of a bucket are those that Go computes from its max and burst.
local function exact(max, burst, permit, refill, tick, window)
  if tick ~= (window >= 3600000000 and window % 1000 == 0 and 1000 or 1) then return false end
  local ticks = window / tick
  if permit < 1 or refill < 1 or ticks % permit ~= 0 or refill * (ticks / permit) ~= max then return false end
  local a, b = permit, refill
  while b > 0 do a, b = b, a % b end
  return a == 1 and burst >= 1 and burst <= 1000000000000 and burst + 10 * max <= math.floor(2 ^ 52 / permit)
    and burst * permit <= math.floor(2 ^ 51 / tick) * refill
end

-- Returns a TAG:WINDOW without the version of the state, which does not matter for an override.
local function unversioned(span) return (string.gsub(span, '^(%a+)%d+:', '%1:')) end

-- Returns the kind of the override in a key and, if it is a limit, the args of its algorithm.
local function read(key, span, most, bursts)
  local text = redis.pcall('GET', key)
  if not text then return {what = 0, ends = 0, max = 0, burst = 0} end
  local nothing = {what = 5, ends = 0, max = 0, burst = 0}
  if type(text) ~= 'string' then
    if string.sub(text.err, 1, 9) == 'WRONGTYPE' then return nothing end
    return {failed = text}
  end
  if #text <= 50 or #text > 1588 then return nothing end
  local what, ends, set, max, burst, permit, refill, tick = struct.unpack('<I1I7I7I7I7I7I7I7', text)
  local made_for = string.byte(text, 51)
  local author = string.byte(text, 52 + made_for)
  local low, high = string.byte(text, 53 + made_for + (author or 0), 54 + made_for + (author or 0))
  if not author or not high then return nothing end
  local note = low + 256 * high
  if note > 1024 or #text ~= 54 + made_for + author + note or ends >= 2 ^ 53 or set >= 2 ^ 53 then return nothing end
  if what == 2 or what == 3 then
    if max + burst + permit + refill + tick > 0 then return nothing end
  elseif what ~= 1 or max < 1 or max > 1000000000000 or burst > 1000000000000 then
    return nothing
  end
  if ends > 0 and ends <= now then return {what = 0, ends = 0, max = 0, burst = 0} end
  local own = {what = what, ends = ends, max = max, burst = burst}
  if what ~= 1 then return own end
  if unversioned(string.sub(text, 52, 51 + made_for)) ~= unversioned(span) then
    nothing.what = 4
    return nothing
  end
  if bursts then
    if not exact(max, burst, permit, refill, tick, string.match(span, ':(%d+)$') + 0) then return nothing end
    own.args = {burst, permit, refill, tick}
  else
    if max > most or burst + permit + refill + tick > 0 then return nothing end
    own.args = {max}
  end
  return own
end

local overrides = {}
for n = 1, count do
  local at = 3 * n - 1
  overrides[n] = read(KEYS[total + n], ARGV[at], ARGV[at + 1] + 0, ARGV[at + 2] == '1')
  if overrides[n].failed then return overrides[n].failed end
  overrides[n].largest = math.huge
end

-- Returns the override of a counter, whether it has the rule's own limit, and whether it counts.
local function role(i)
  local at = roles + 3 * i - 3
  local o = overrides[ARGV[at] + 0]
  return o, ARGV[at + 1] == '1', not o or o.what ~= 2 and o.what ~= 3 and (ARGV[at + 2] ~= '1' or o.what == 1)
end

-- A cost above this is the largest that fits. Reservations have no such cost.
local largest = name == 'reserve' and math.huge or 2 ^ 52

local stopped = false
for i = 1, total do
  local o, own, counts = role(i)
  local a = head + 6 * i - 5 -- of the algorithm, in args
  if o then
    local dry = string.sub(args[a], 1, 1) == '~'
    if o.what == 3 and not dry then stopped = true end
    if o.what == 1 and own then
      for n, arg in ipairs(o.args) do args[a + 1 + n] = arg end
    end
    if counts and args[a + 1] + 0 > largest then o.largest = math.min(o.largest, args[a + 2] + 0) end
  end
end

-- A cost that can never fit is an error, so no counter of its rule may be charged.
for i = 1, total do
  local o, own, counts = role(i)
  local a = head + 6 * i - 5
  if o and counts then
    if args[a + 1] + 0 > largest then args[a + 1] = o.largest end
    local most = args[a + 2] + 0
    if name == 'reserve' then
      local window = string.match(ARGV[2], ':(%d+)$') + 0
      most = math.max(most, 10 * (window / args[a + 5] / args[a + 3] * args[a + 4]))
    end
    if args[a + 1] + 0 > most and name ~= 'up to' and name ~= 'charge' then
      o.costly = true
      if string.sub(args[a], 1, 1) ~= '~' then stopped = true end
    end
  end
end

local deciding = false
for i = 1, total do
  local o, _, counts = role(i)
  if counts and not (o and o.costly) then
    deciding = true
  elseif name == 'decide' then
    args[head + 6 * i - 5] = 'off'
  end
end

local reply = {now}
if stopped or not deciding then
  if name == 'equal' then
    for i = 2, 1 + total do reply[i] = '' end
  else
    for i = 2, lead + 4 * total do reply[i] = 0 end
  end
else
  reply = driver(keys, args)
  if #reply == 1 then return reply end -- the script must be called again, with other args
end
for n = 1, count do
  local o = overrides[n]
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3], reply[#reply + 4] = o.what, o.ends, o.max, o.burst
end
return reply
