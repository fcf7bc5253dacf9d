-- Charges a cost to all of its counters, whether it fits or not. What exceeds a limit is debt: later
-- calls are refused until it has come back. Debt is bounded, and what exceeds the bound is not
-- charged.
--
-- KEYS[i]   the counters, all in one cluster slot, of algorithms that can be in debt
-- ARGV[1]   the bound of the debt: see debt.lua
-- ARGV      then six for each counter: algorithm, cost, and the algorithm's args, padded with zeros
--           to four. The first arg is the limit's largest number of permits
-- reply     now (microseconds since the epoch); then four for each counter: permits charged, permits
--           left, reset after (microseconds), position of the charge. Now alone: as in decide.lua
-- keeps     nothing is written before everything is decided; every write sets the time to live
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local reply, answers = {now}, {}

for i = 1, #KEYS do
  local a = 6 * i - 4
  local max = ARGV[a + 2] + 0
  local answer = algorithms[ARGV[a]](KEYS[i], now, ARGV[a + 1] + 0, max, ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], debt_of(max, ARGV[1]))
  if not answer then return {now} end
  answers[i] = answer
end
for i = 1, #KEYS do
  local answer, at = answers[i], 4 * i - 2
  if answer.charged and answer.cost > 0 then
    redis.call('SET', KEYS[i], answer.charged, 'PXAT', math.floor((now + answer.charged_reset) / 1000) + 1)
    reply[at], reply[at + 1] = answer.cost, math.max(0, answer.left - answer.cost)
    reply[at + 2], reply[at + 3] = answer.charged_reset, answer.position or 0
  else
    if answer.anchored then
      redis.call('SET', KEYS[i], answer.anchored, 'PXAT', math.floor((now + answer.reset) / 1000) + 1)
    end
    reply[at], reply[at + 1], reply[at + 2], reply[at + 3] = 0, math.max(0, answer.left), answer.reset, 0
  end
end
return reply
