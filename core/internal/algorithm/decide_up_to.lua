-- Charges as much of a call's cost as fits into all of its counters.
--
-- KEYS[i]   the counters, all in one cluster slot
-- ARGV      six for each counter: algorithm, cost, and the algorithm's args, padded with zeros to
--           four. The cost is at least 1, and the same for all
-- reply     now (microseconds since the epoch); how much was charged; then four numbers for each
--           counter, as in decide.lua for a call of that cost, or of cost 1 if nothing was charged.
--           Now alone: as in decide.lua
-- keeps     what decide.lua keeps
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local answers, granted = {}, ARGV[2] + 0

local function look(i, cost)
  local a = 6 * i - 5
  return algorithms[ARGV[a]](KEYS[i], now, cost, ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
end

local function write(key, state, lives)
  if type(state) == 'function' then
    state()
    redis.call('PEXPIREAT', key, math.floor((now + lives) / 1000) + 1)
  else
    redis.call('SET', key, state, 'PXAT', math.floor((now + lives) / 1000) + 1)
  end
end

for i = 1, #KEYS do
  answers[i] = look(i, 1)
  if not answers[i] then return {now} end
  granted = math.min(granted, math.max(0, answers[i].left))
end

-- The answers of all counters to the granted cost are computed before anything is written.
if granted > 1 then
  for i = 1, #KEYS do answers[i] = look(i, granted) end
end
local reply = {now, granted}
for i = 1, #KEYS do
  local answer, at = answers[i], 4 * i - 1
  reply[at], reply[at + 1], reply[at + 2], reply[at + 3] = answer.retry, math.max(0, answer.left), answer.reset, 0
  if granted > 0 then
    write(KEYS[i], answer.charged, answer.charged_reset)
    reply[at + 1], reply[at + 2], reply[at + 3] = reply[at + 1] - granted, answer.charged_reset, answer.position or 0
  elseif answer.anchored then
    write(KEYS[i], answer.anchored, answer.reset)
  end
end
return reply
