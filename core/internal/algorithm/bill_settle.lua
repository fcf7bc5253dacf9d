-- Settles a bill, or adds to it. Settled, each of its counters holds what was used: more is charged
-- now, whether it fits or not, and what was charged too much is given back as far as it still counts.
-- What is added is charged whether it fits or not.
--
-- KEYS[i]   the counters of the bill; behind them the bill. All are in one cluster slot
-- ARGV[1]   1 to settle, 0 to add
-- ARGV[2]   permits: used in all, or added; at most 2^52
-- ARGV[3]   the bound of the debt: see debt.lua
-- ARGV[4]   when the bill was opened (microseconds)
-- ARGV[5]   permits that each counter was charged then
-- ARGV      then six for each counter: algorithm, position of that charge, and the algorithm's args,
--           padded with zeros to four
-- reply     now (microseconds since the epoch); 0: there is no such bill, 1: it is done, 2: the bill was
--           settled before, and nothing was done; permits used of a bill that was settled before; how
--           many permits exceed, or exceeded then, the bound of the debt of some counter; how many
--           permits may still have counted, but were not given back. Now alone: as in decide.lua
-- state     bill_open.lua has the form of a bill
-- keeps     a bill is settled once, and then forgotten after five minutes. Nothing is written
--           before all states are found sound. Of more than 32 additions, only the newest 32 can be
--           given back. The sum of a bill is at most 2^52
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local max_additions, settled_life = 32, 5 * 60 * 1000000
local count, bill = #KEYS - 1, KEYS[#KEYS]
local settles, amount, opened, estimate = ARGV[1] == '1', ARGV[2] + 0, ARGV[4] + 0, ARGV[5] + 0

local record = redis.call('GET', bill)
if not record then return {now, 0, 0, 0, 0} end
local head, size = 15, 7 + 14 * count -- the lengths of what precedes the counters, and of an addition
local ends, settled, used = struct.unpack('<I7I1I7', record)
if ends <= now then return {now, 0, 0, 0, 0} end
if settled == 1 and #record == head then return {now, 2, used, 0, 0} end
if settled == 1 and #record == head + 7 then return {now, 2, used, struct.unpack('<I7', record, head + 1), 0} end
local from = head + 7 * count + 1 -- of the additions
if settled ~= 0 or #record < from - 1 or (#record - from + 1) % size ~= 0 then error('NOTACOUNTER ' .. bill) end
local charged, additions = {struct.unpack('<' .. string.rep('I7', count), record, head + 1)}, string.sub(record, from)

-- Returns the answer of a function of the counter's algorithm.
local function ask(functions, i, cost, debt)
  local a = 6 * i
  return functions[ARGV[a]](KEYS[i], now, cost, ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], debt)
end

for i = 1, count do
  if not ask(algorithms, i, 0) then return {now} end
end

local function write(i, state, lives)
  if type(state) == 'function' then
    state()
  else
    redis.call('SET', KEYS[i], state, 'PXAT', math.floor((now + lives) / 1000) + 1)
  end
end

local above, lost = 0, 0

-- Charges a counter whether the cost fits or not. Returns how much was charged, and its position.
local function charge(i, cost)
  local answer = ask(algorithms, i, cost, debt_of(ARGV[6 * i + 2] + 0, ARGV[3]))
  local taken = answer.charged and answer.cost or 0
  above = math.max(above, cost - taken)
  if taken > 0 then
    write(i, answer.charged, answer.charged_reset)
  elseif answer.anchored then
    write(i, answer.anchored, answer.reset)
  end
  return taken, taken > 0 and answer.position or 0
end

-- Gives back a part of a charge to a counter.
local function give_back(i, cost, at, position)
  if cost == 0 then return end
  local answer = ask(givers, i, {cost = cost, at = at, position = position, in_debt = true})
  lost = lost + (answer and answer.lost or 0)
  if answer and answer.change then write(i, answer.change, answer.lives) end
end

-- Gives back permits of the additions to a counter up to one, the newest ones, in the order in which they
-- were charged: so a bucket loses nothing that was charged in between.
local function give_back_additions(i, permits, from)
  if permits == 0 or from < 1 then return end
  local at = struct.unpack('<I7', additions, from)
  local taken, position = struct.unpack('<I7I7', additions, from + 14 * i - 7)
  local part = math.min(permits, taken)
  give_back_additions(i, permits - part, from - size)
  give_back(i, part, at, position)
end

-- Gives back permits of what the bill charged to a counter: first of what it was opened with.
local function give_back_of_bill(i, permits)
  local part = math.min(permits, estimate)
  give_back(i, part, opened, ARGV[6 * i + 1] + 0)
  give_back_additions(i, permits - part, #additions - size + 1)
end

if settles then
  for i = 1, count do
    if amount > charged[i] then charge(i, amount - charged[i]) else give_back_of_bill(i, charged[i] - amount) end
  end
  ends = math.min(ends, now + settled_life)
  record = struct.pack('<I7I1I7', ends, 1, amount) .. (above > 0 and struct.pack('<I7', above) or '')
else
  local heads, addition = {struct.pack('<I7I1I7', ends, 0, 0)}, {struct.pack('<I7', now)}
  for i = 1, count do
    local taken, position = charge(i, amount)
    heads[i + 1], addition[i + 1] = struct.pack('<I7', math.min(2 ^ 52, charged[i] + taken)), struct.pack('<I7I7', taken, position)
  end
  additions = additions .. table.concat(addition)
  if #additions > max_additions * size then additions = string.sub(additions, size + 1) end
  record = table.concat(heads) .. additions
end
redis.call('SET', bill, record, 'PXAT', math.floor(ends / 1000) + 1)
return {now, 1, 0, above, lost}
