-- Settles a bill, or adds to it. Settled, each of its counters holds what was used: more is charged
-- now, whether it fits or not, and what was charged too much is given back as far as it still counts.
-- What is added is charged whether it fits or not.
--
-- KEYS[i]   the counters of the bill; behind them the bill. All are in one cluster slot
-- ARGV[1]   struct I7 1 to settle, 0 to add; I7 permits: used in all, or added, at most 2^52; I7 when the
--           bill was opened (microseconds); I7 permits that each counter was charged then
-- ARGV      then three for each counter: its algorithm; struct I7 position of that charge, I7 the most
--           permits that one charge can take, I7 units of a permit, and the five I7 that are the args of
--           its step, with the debt; and the four I7 that are the args of its change
-- reply     now (microseconds since the epoch), the bill, and the state of each counter, all as found, ''
--           for none. Now alone: the args are those of another day, and nothing was done
-- state     of a bill: a string, little-endian: I7 when it is forgotten (microseconds); I1 1 if it is
--           settled, otherwise 0; I7 permits used, of a settled bill, and I7 how many of them exceeded the
--           bound of a debt, if some did. If it is not settled, I7 permits charged for each counter; then
--           for each addition, the oldest first, I7 when (microseconds), and for each counter I7 permits
--           charged and I7 position of the charge
-- keeps     a bill is settled once, and then forgotten after five minutes. Nothing is written
--           before everything is decided. Of more than 32 additions, only the newest 32 can be
--           given back. The sum of a bill is at most 2^52
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local max_additions, settled_life = 32, 5 * 60 * 1000000
local count, bill = #KEYS - 1, KEYS[#KEYS]
local settles, amount, opened, estimate = struct.unpack('<I7I7I7I7', ARGV[1])

local record, states = redis.call('GET', bill), {}
for i = 1, count do states[i] = redis.call('GET', KEYS[i]) end
local reply = {now, record or ''}
for i = 1, count do reply[i + 2] = states[i] or '' end
if not record then return reply end
local head, size = 15, 7 + 14 * count -- the lengths of what precedes the counters, and of an addition
local ends, settled = struct.unpack('<I7I1', record)
if ends <= now or settled == 1 and (#record == head or #record == head + 7) then return reply end
local from = head + 7 * count + 1 -- of the additions
if settled ~= 0 or #record < from - 1 or (#record - from + 1) % size ~= 0 then error('NOTACOUNTER ' .. bill) end
local charged, additions = {struct.unpack('<' .. string.rep('I7', count), record, head + 1)}, string.sub(record, from)

-- Asks the step of a counter for permits.
local function ask(i, permits)
  local _, most, unit, a, b, c, d, e = struct.unpack('<I7I7I7I7I7I7I7I7', ARGV[3 * i])
  return steps[ARGV[3 * i - 1]](states[i], now, math.min(permits, most), unit, a, b, c, d, e)
end

for i = 1, count do
  local fit = ask(i, 0)
  if fit == -1 then error('NOTACOUNTER ' .. KEYS[i]) end
  if fit == -2 then return {now} end
end

local expires, above = {}, 0

-- Replaces the state of a counter. nil: it stays; '': it is forgotten.
local function put(i, state, at)
  if state == -1 then error('NOTACOUNTER ' .. KEYS[i]) end
  if state then states[i], expires[i] = state ~= '' and state, at or 0 end
end

-- Charges a counter whether the cost fits or not. Returns how much was charged, and its position.
local function charge(i, cost)
  local taken, state, at, _, position = ask(i, cost)
  put(i, state, at)
  above = math.max(above, cost - taken)
  return taken, taken > 0 and position or 0
end

-- Gives back a part of a charge to a counter.
local function give_back(i, cost, at, position)
  if cost == 0 then return end
  local a, b, c, d = struct.unpack('<I7I7I7I7', ARGV[3 * i + 1])
  local state, over = changes[ARGV[3 * i - 1]](states[i], now, cost, at, position, 0, 1, a, b, c, d)
  put(i, state, over and math.floor(over / 1000) + 1)
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
  give_back(i, part, opened, (struct.unpack('<I7', ARGV[3 * i])))
  give_back_additions(i, permits - part, #additions - size + 1)
end

if settles == 1 then
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
for i = 1, count do
  if not expires[i] then -- it stays
  elseif states[i] then
    redis.call('SET', KEYS[i], states[i], 'PXAT', expires[i])
  else
    redis.call('DEL', KEYS[i])
  end
end
redis.call('SET', bill, record, 'PXAT', math.floor(ends / 1000) + 1)
return reply
