-- Decides over one call's counters together: all of them are charged, or none.
--
-- KEYS[i]   the counters, all in one cluster slot
-- ARGV[1]   1 to charge, 0 to look only
-- ARGV      then six for each counter: algorithm, cost, and the algorithm's args, padded with zeros to four
-- reply     now (microseconds since the epoch); then for each counter: retry after (microseconds, 0: its part fits),
--           permits left, reset after (microseconds)
-- keeps     a refused call writes nothing, but that a clock which stepped back is written once; every write sets the
--           time to live, and a key dies when its state equals that of a fresh one
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local reply, charges, fits = {now}, {}, true

local function write(key, state, reset)
  redis.call('SET', key, state, 'PXAT', math.floor((now + reset) / 1000) + 1)
end

for i = 1, #KEYS do
  local a = 6 * i - 4
  local cost = ARGV[a + 1] + 0
  local retry, left, reset, reset_charged, charge, anchored = algorithms[ARGV[a]](redis.call('GET', KEYS[i]), now, cost,
    ARGV[a + 2] + 0, ARGV[a + 3] + 0, ARGV[a + 4] + 0, ARGV[a + 5] + 0)
  if cost == 0 then retry = 0 end
  reply[3 * i - 1], reply[3 * i], reply[3 * i + 1] = retry, math.max(0, left), reset
  charges[i] = {charge, reset_charged, cost, anchored, reset}
  fits = fits and retry == 0
end

if ARGV[1] == '1' then
  for i = 1, #KEYS do
    local charge, reset_charged, cost, anchored, reset = unpack(charges[i], 1, 5)
    if not fits then
      if anchored and cost > 0 then write(KEYS[i], anchored, reset) end
    elseif cost > 0 then
      write(KEYS[i], charge, reset_charged)
      reply[3 * i], reply[3 * i + 1] = reply[3 * i] - cost, reset_charged
    end
  end
end
return reply
