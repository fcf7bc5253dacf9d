-- Decides over equal calls that were made together: as many are charged as fit, first come first
-- served. Each is charged to all of its counters.
--
-- KEYS[i]   the counters, all in one cluster slot; of algorithms whose state is a string
-- ARGV[1]   how many calls
-- ARGV      then six for each counter: algorithm, cost, and the algorithm's args, padded with zeros
--           to four
-- reply     now (microseconds since the epoch); then the state of each counter as found, '' for
--           none. If there is only now: ask again with the bounds of this now
-- keeps     what decide.lua keeps
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local reply, calls = {now}, ARGV[1] + 0

-- Asks the algorithm of a counter about the cost of so many calls.
local function look(i, calls)
  local a = 6 * i - 4
  return algorithms[ARGV[a]](KEYS[i], now, calls * ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
end

local function write(key, state, reset)
  redis.call('SET', key, state, 'PXAT', math.floor((now + reset) / 1000) + 1)
end

for i = 1, #KEYS do
  reply[i + 1] = redis.call('GET', KEYS[i]) or ''
  local retry, left = look(i, 1)
  if retry < 0 then return {now} end
  calls = math.min(calls, math.floor(math.max(0, left) / ARGV[6 * i - 3]))
end
for i = 1, #KEYS do
  local _, _, reset, reset_charged, charged, _, anchored, _, _, lives, lives_charged = look(i, math.max(1, calls))
  if calls > 0 then
    write(KEYS[i], charged, lives_charged or reset_charged)
  elseif anchored then
    write(KEYS[i], anchored, lives or reset)
  end
end
return reply
