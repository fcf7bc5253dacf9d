-- Decides equal calls that were made together, first come first served. It charges as many as fit,
-- each to all of its counters.
--
-- KEYS[i]   the counters, all in one cluster slot; of algorithms whose state is a string
-- ARGV[1]   how many calls
-- ARGV      then six for each counter: algorithm, cost, and the algorithm's args, padded with zeros
--           to four
-- reply     now (microseconds since the epoch); then the state of each counter as found, '' for
--           none. Now alone: as in decide.lua
-- keeps     what decide.lua keeps
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local reply, calls = {now}, ARGV[1] + 0

-- Returns the algorithm's answer for a counter if this many calls are charged at once.
local function look(i, calls)
  local a = 6 * i - 4
  return algorithms[ARGV[a]](KEYS[i], now, calls * ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
end

local function write(key, state, lives)
  redis.call('SET', key, state, 'PXAT', math.floor((now + lives) / 1000) + 1)
end

local answers, fit = {}, calls
for i = 1, #KEYS do
  reply[i + 1] = redis.call('GET', KEYS[i]) or ''
  local answer = look(i, calls)
  if not answer then return {now} end
  answers[i] = answer
  if not answer.no_permits then
    fit = math.min(fit, math.floor(math.max(0, answer.left) / ARGV[6 * i - 3]))
  elseif answer.retry > 0 then
    fit = 0
  end
end
for i = 1, #KEYS do
  local answer = answers[i]
  if fit > 0 and not answer.no_permits then
    if fit < calls then answer = look(i, fit) end
    write(KEYS[i], answer.charged, answer.charged_reset)
  elseif answer.anchored then
    write(KEYS[i], answer.anchored, answer.reset)
  end
end
return reply
