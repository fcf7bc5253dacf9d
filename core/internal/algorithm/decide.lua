-- Decides over one call's counters together: all of them are charged, or none.
--
-- KEYS[i]   the counters, all in one cluster slot
-- ARGV[1]   1 to charge, 0 to look only
-- ARGV      then six for each counter: algorithm, cost, and the algorithm's args, padded with zeros
--           to four. A ~ before the algorithm means that this counter refuses no call. The cost of
--           a ban is the number of counters that it watches; the ban also holds if that is 0
-- ARGV      then for each ban the places in KEYS of the counters that it watches, none of them a
--           ban
-- reply     now (microseconds since the epoch); then for each counter: retry after (microseconds;
--           0: the cost fits; -1: ask again with the bounds of this now), permits left, reset after
--           (microseconds), and the position of the charge, which identifies it when it is given
--           back (0 if nothing was charged or the algorithm needs none; for a ban 1 if this call is
--           a strike, otherwise 0)
-- keeps     a refused call writes nothing, except that a clock which stepped back is noted once,
--           and a ban gets one strike per window; every write sets the time to live, and a key dies
--           when its state equals that of a fresh one
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local reply, found, fits = {now}, {}, true
local place = 6 * #KEYS + 2 -- of the next watched counter, in ARGV

-- A change is the new string, or for other types of keys a function that makes the change.
local function write(key, change, reset)
  if type(change) == 'function' then
    change()
    redis.call('PEXPIREAT', key, math.floor((now + reset) / 1000) + 1)
  else
    redis.call('SET', key, change, 'PXAT', math.floor((now + reset) / 1000) + 1)
  end
end

for i = 1, #KEYS do
  local a = 6 * i - 4
  local algorithm, cost = algorithms[ARGV[a]], ARGV[a + 1] + 0
  local dry = not algorithm
  if dry then algorithm = algorithms[string.sub(ARGV[a], 2)] end
  local retry, left, reset, reset_charged, charge, position, anchored, strike, reset_struck, lives, lives_charged =
    algorithm(KEYS[i], now, cost, ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
  local ban = string.sub(ARGV[a], -3) == 'bn1'
  local counts = cost > 0 or ban
  if not counts then retry = math.min(retry, 0) end -- -1 stays
  reply[4 * i - 2], reply[4 * i - 1], reply[4 * i], reply[4 * i + 1] = retry, math.max(0, left), reset, 0
  found[i] = {charge, reset_charged, position, cost, counts and anchored, lives or reset, strike, reset_struck, place,
    lives_charged or reset_charged}
  if ban then place = place + cost end
  fits = fits and (retry == 0 or dry and retry > 0)
end

if ARGV[1] == '1' then
  for i = 1, #KEYS do
    local charge, reset_charged, position, cost, anchored, lives, strike, reset_struck, first, lives_charged =
      unpack(found[i], 1, 10)
    local struck = false
    if strike then
      for at = first, first + cost - 1 do struck = struck or reply[4 * ARGV[at] - 2] > 0 end
    end
    if struck then
      write(KEYS[i], strike, reset_struck)
      reply[4 * i - 2], reply[4 * i + 1] = math.max(0, struct.unpack('<I7', strike) - now), 1
    elseif cost > 0 and fits and charge then
      write(KEYS[i], charge, lives_charged)
      reply[4 * i - 1], reply[4 * i], reply[4 * i + 1] = reply[4 * i - 1] - cost, reset_charged, position
    elseif anchored then
      write(KEYS[i], anchored, lives)
    end
  end
end
return reply
