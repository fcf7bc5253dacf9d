-- SlidingLog: never more than max permits in any span of window microseconds, to the microsecond.
--
-- A log has a clock of its own: that of Redis and a shift. If the clock of Redis steps back, the shift
-- grows, so that the log's clock stands still. So no permits are created, nobody waits longer than a
-- window, and nothing has to be rewritten.
--
-- The permits of a call have consecutive numbers. Between those of two calls one is left out. The
-- numbers begin with the time, and the last one is the position of the charge.
--
-- args      max, window (microseconds), note
-- state     a sorted set with a member for each permit in use, by when it was charged (microseconds, by
--           the log's clock): its number, big-endian in 7 bytes, and in the last one of a call the note.
--           If there is a shift, the empty member has its negative as score. Permits that no longer
--           count stay until the next charge. If none counts, the next charge begins anew
-- reply     a string, little-endian, about the time before: I7 shift, I7 permits used, I7 when the
--           newest one was charged, I7 its number, I7 when the one was charged with whose end one unit
--           fits (0: none, or it fits)
sets.sl3 = true

local function number_of(member) return (struct.unpack('>I7', member)) end

-- Returns the time by the log's clock; if there are permits, the time and the number of the newest one,
-- otherwise nil and 0; the shift that is written, and whether the clock stepped back, so that it has
-- grown. Without a log of ours, it returns nil.
local function read_log(key, now)
  local last = redis.pcall('ZRANGE', key, -1, -1, 'WITHSCORES')
  if last.err then return allow_other_type(last.err) end
  if not last[1] then return now, nil, 0, 0, false end
  local shift = -(redis.call('ZSCORE', key, '') or 0)
  local newest, number = last[2] + 0, #last[1] >= 7 and number_of(last[1]) or 2 ^ 53
  if shift < 0 or newest < 1 or newest >= 2 ^ 53 or number >= 2 ^ 53 or (shift + newest) % 1 ~= 0 then return nil end
  return math.max(now + shift, newest), newest, number, shift, newest > now + shift
end

-- Writes the shift with which the log's clock shows a time now.
local function write_shift(key, time, now) redis.call('ZADD', key, now - time, '') end

steps.sl3 = function(_, now, ask, unit, max, window, _, _, _, key, note)
  local time, newest, number, _, stepped = read_log(key, now)
  if not time then return -1 end
  local dead = time - window
  local used = newest and redis.call('ZCOUNT', key, dead + 1, '+inf') or 0
  if used == 0 then time, newest, number = now, 0, 0 end

  local fit = math.min(ask, math.max(0, math.floor((max - used) / unit)))
  local missing, freeing = used + unit - max, 0
  if missing > 0 and missing <= used then
    local at = redis.call('ZCARD', key) - used + missing - 1
    freeing = redis.call('ZRANGE', key, at, at, 'WITHSCORES')[2] + 0
  end
  local reply = struct.pack('<I7I7I7I7I7', time - now, used, newest, number, freeing)
  if fit == 0 then
    local function move() write_shift(key, time, now) end
    return 0, stepped and move or nil, string.format('%d', (now + newest + window - time) / 1000 + 1), reply
  end

  local position = math.max(number + 1, time) + fit * unit
  local function add()
    if used == 0 then redis.call('DEL', key) else redis.call('ZREMRANGEBYSCORE', key, 0, dead) end
    if stepped then write_shift(key, time, now) end
    local members = {}
    for at = position - fit * unit + 1, position do
      members[#members + 1] = time
      members[#members + 1] = struct.pack('>I7', at) .. (at == position and note or '')
      if #members == 2000 or at == position then
        redis.call('ZADD', key, unpack(members))
        members = {}
      end
    end
  end
  return fit, add, string.format('%d', (now + window) / 1000 + 1), reply
end

-- It removes permits of a call, the last one last, because it has the note. It finds them by the time
-- and the position of the charge. Permits charged between two steps back of the clock are not found
-- after the second one.
changes.sl3 = function(_, now, cost, charged_at, position, _, _, _, window, _, _, key)
  local time, newest, number, shift, stepped = read_log(key, now)
  if not time then return -1 end
  if not newest or position > number then return end

  -- Returns the members of the time at, and the first and the last one of the call, if it was charged then.
  local function charged_then(at)
    if at <= time - window or at > newest then return end
    local all = redis.call('ZRANGEBYSCORE', key, at, at)
    local first
    for i = 1, #all do
      local number, behind = number_of(all[i]), all[i + 1] and number_of(all[i + 1])
      first = first or i
      if behind ~= number + 1 then -- the last one of a call
        if number == position then return all, first, i end
        first = nil
      end
    end
  end
  local all, first, last = charged_then(charged_at)
  if not all and shift > 0 then all, first, last = charged_then(charged_at + shift) end
  if not all then return end

  local upto = math.min(first + cost - 1, last)
  if upto == last and position == number then
    local before = first - last - 2
    newest = redis.call('ZRANGE', key, before, before, 'WITHSCORES')[2]
    if not newest or newest + 0 <= time - window then return '' end
  end
  local function remove()
    -- This comes first because it needs no memory: see change.lua.
    for from = first, upto, 1000 do redis.call('ZREM', key, unpack(all, from, math.min(from + 999, upto))) end
    if stepped then write_shift(key, time, now) end
  end
  return remove, now + newest + window - time
end
