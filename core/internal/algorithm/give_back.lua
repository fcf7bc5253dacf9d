-- Gives back what one call charged, as far as it still counts. It never leaves a counter with less
-- than other calls used.
--
-- KEYS[i]   the counters, all in one cluster slot, each once
-- ARGV      ten for each counter: algorithm, permits to give back, when they were charged
--           (microseconds: the first number of that reply), the position of the charge (of that
--           reply), 1 if these are all of its permits, otherwise 0, 1 if they come back even if a bucket
--           is overdrawn, otherwise 0, and the algorithm's args, padded to four
-- reply     how many counters were changed, and how many permits may still have counted,
--           but were not given back
--
-- An algorithm's function takes key, now, the charge (cost, at, position, whole and in_debt: see
-- Charge in Go) and the args, and changes nothing. It returns nil if there is nothing to change,
-- otherwise a table:
--
-- change    the state to write, or a function that changes the key. nil: there is nothing to change
-- lives     for how long the state counts, at most
-- lost      how many permits may have counted still, but are not given back
--
-- An algorithm without a function gives nothing back.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local changes, lost = {}, 0
for i = 1, #KEYS do
  local a = 10 * i - 9
  local charge = {cost = ARGV[a + 1] + 0, at = ARGV[a + 2] + 0, position = ARGV[a + 3] + 0}
  charge.whole, charge.in_debt = ARGV[a + 4] == '1', ARGV[a + 5] == '1'
  local give_back = algorithms[ARGV[a]]
  local answer = give_back and give_back(KEYS[i], now, charge, ARGV[a + 6], ARGV[a + 7], ARGV[a + 8], ARGV[a + 9])
  lost = lost + (answer and answer.lost or 0)
  if answer and answer.change then
    answer.key = KEYS[i]
    changes[#changes + 1] = answer
  end
end
for _, answer in ipairs(changes) do
  local expires = math.floor((now + answer.lives) / 1000) + 1
  if type(answer.change) == 'function' then
    -- This comes first because it needs no memory. If its memory is full, Redis refuses the first
    -- write of a script that may need memory, but not later writes.
    redis.call('PEXPIREAT', answer.key, expires)
    answer.change()
  else
    redis.call('SET', answer.key, answer.change, 'PXAT', expires)
  end
end
return {#changes, lost}
