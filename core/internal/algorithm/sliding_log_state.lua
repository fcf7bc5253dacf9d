-- The state of a SlidingLog.
--
-- A log has a clock of its own: that of Redis and a shift. If the clock of Redis steps back, the shift grows,
-- so that the log's clock stands still. So no permits are created, nobody waits longer than a window, and
-- nothing has to be rewritten.
--
-- The permits of a call have consecutive numbers. Between those of two calls one is left out. The numbers
-- begin with the time, and the last one is the position of the charge.
--
-- state     a sorted set with a member for each permit in use, by when it was charged (microseconds, by the
--           log's clock): its number, big-endian in 7 bytes, and in the last one of a call the note. If there
--           is a shift, the empty member has its negative as score. Permits that no longer count stay until the
--           next charge. If none counts, the next charge begins anew

local function number_of(member) return (struct.unpack('>I7', member)) end

-- Returns the time by the log's clock; if there are permits, the time and the number of the newest one,
-- otherwise nil and 0; the shift that is written, and whether the clock stepped back, so that it has grown.
local function read_log(key, now)
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  if not last[1] then return now, nil, 0, 0, false end
  local shift = -(redis.call('ZSCORE', key, '') or 0)
  local newest, number = last[2] + 0, #last[1] >= 7 and number_of(last[1]) or 2 ^ 53
  if shift < 0 or newest < 1 or newest >= 2 ^ 53 or number >= 2 ^ 53 or (shift + newest) % 1 ~= 0 then error('NOTACOUNTER ' .. key) end
  return math.max(now + shift, newest), newest, number, shift, newest > now + shift
end

-- Writes the shift with which the log's clock shows a time now.
local function write_shift(key, time, now) redis.call('ZADD', key, now - time, '') end
