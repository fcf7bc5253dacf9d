-- Decides over one call's counters together: all of them are charged, or none.
--
-- KEYS[i]   the counters, all in one cluster slot
-- ARGV[1]   1 to charge, 0 to look only
-- ARGV      then six for each counter: algorithm, cost, and the algorithm's args, padded with zeros
--           to four. A ~ before the algorithm: this counter refuses no call. A number behind the ~:
--           the group of the counter. All counters of a group are charged, or none
-- reply     now (microseconds since the epoch); then four for each counter: retry after
--           (microseconds, 0: its part fits), permits left (of a look: negative if more are in use
--           than the limit lets through), reset after (microseconds), and the position of the
--           charge, which giving it back takes (0 if nothing was charged, or the algorithm needs
--           none). Now alone: nothing was done, and the script is to be called again, with the args
--           for this now
-- keeps     a refused call writes nothing, except that a clock which stepped back is written once;
--           every write sets the time to live, and a key dies when its state equals that of a fresh
--           one
--
-- An algorithm's function takes key, now, cost and the args, and changes nothing. With one more, debt,
-- the cost may exceed what is left: see charge.lua. It returns nil if the args are those of another
-- time, otherwise a table:
--
-- retry, left, reset         as replied, but for a position; left may be negative
-- cost                       how much is charged, if it can be charged in debt
-- anchored                   the state to write if the call is not charged: the clock stepped back
-- charged, charged_reset,    if the cost fits: the state to write if the call is charged, and what
-- position                   is replied then
-- no_permits                 of a pause: true. It has no cost, and is never charged
--
-- A state to write is a string, or a function that changes a key of another type. Its expiry is
-- absolute, from the time of the decision: one relative to the start of the command could end a
-- window early. The table has names because positional results took Redis as many instructions.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local reply, answers, fits, full = {now}, {}, true, {} -- full: the groups that are not charged

local function write(key, state, lives)
  if type(state) == 'function' then
    state()
    redis.call('PEXPIREAT', key, math.floor((now + lives) / 1000) + 1)
  else
    redis.call('SET', key, state, 'PXAT', math.floor((now + lives) / 1000) + 1)
  end
end

for i = 1, #KEYS do
  local a = 6 * i - 4
  local algorithm, cost, group = algorithms[ARGV[a]], ARGV[a + 1] + 0, nil
  if not algorithm then
    local number, name = string.match(ARGV[a], '^~(%d*)(.*)$')
    algorithm, group = algorithms[name], number
  end
  local answer = algorithm(KEYS[i], now, cost, ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
  if not answer then return {now} end
  local retry = (cost > 0 or answer.no_permits) and answer.retry or 0
  answers[i], answer.cost, answer.group = answer, cost, group
  reply[4 * i - 2], reply[4 * i - 1], reply[4 * i], reply[4 * i + 1] = retry, math.max(0, answer.left), answer.reset, 0
  if retry > 0 and not group then
    fits = false
  elseif retry > 0 and group ~= '' then
    full[group] = true
  end
end
if ARGV[1] ~= '1' then
  for i = 1, #KEYS do reply[4 * i - 1] = answers[i].left end
  return reply
end

for i = 1, #KEYS do
  local answer, cost = answers[i], answers[i].cost
  if cost > 0 and fits and answer.charged and not full[answer.group or ''] then
    write(KEYS[i], answer.charged, answer.charged_reset)
    reply[4 * i - 1], reply[4 * i], reply[4 * i + 1] = reply[4 * i - 1] - cost, answer.charged_reset, answer.position or 0
  elseif answer.anchored and (cost > 0 or answer.no_permits) then
    write(KEYS[i], answer.anchored, answer.reset)
  end
end
return reply
