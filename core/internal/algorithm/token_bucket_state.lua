-- The state of a TokenBucket. A bucket has one rate, that of the call: each call refills the time since
-- the last one at its own rate, and must fit into its own burst. So calls at several rates together never
-- exceed the largest burst and what the fastest rate brings back. The state is forgotten when the rate of
-- the last call has brought everything back, so no wait becomes longer because a rate was lowered.
--
-- A permit is divided into units such that a whole number of units comes back per tick, so nothing is
-- rounded at any rate. If another rate divides it otherwise, the use is rounded up to whole units.
--
-- Positions number the charged permits in order, and the oldest ones come back first. So those in use have
-- the last positions.
--
-- state     a string, little-endian: I7 last tick, I7 units used, I6 units per permit, I5 units refilled per
--           tick, I7 position of the last charge, I7 birth (microseconds): when the first of the permits
--           in use was charged, or earlier
-- keeps     units used and positions are at most 2^52, so every sum here is exact in a double. The
--           positions begin with the time of the birth (modulo 2^51). So if the clock steps back, the
--           charges of a counter that was reset or forgotten are not taken for those of its successor

local function write_bucket(at, used, permit, refill, charged, born)
  return struct.pack('<I7I7I6I5I7I7', at, used, permit, refill, charged, born)
end

-- Returns, as a call at a rate sees them: the tick, what is used then, the number of ticks until the
-- state is forgotten if the rate of the last call says so, the position of the last charge, the birth, and
-- the state to write if the clock stepped back: the refill continues from now, and no permits are created.
-- Without a rate, that of the last call counts, and is returned, too.
local function read_bucket(key, now, tick, permit, refill)
  local at = (now - now % tick) / tick
  local state = redis.call('GET', key)
  if not state then return at, 0, math.huge, now % 2 ^ 51, now end
  local last, used, unit, rate, charged, born = struct.unpack('<I7I7I6I5I7I7', state)
  if #state ~= 39 or last >= 2 ^ 53 or used > 2 ^ 52 or unit == 0 or rate == 0 or charged > 2 ^ 52 or born >= 2 ^ 53 then
    error('NOTACOUNTER ' .. key)
  end
  local whole, moved = math.huge, nil
  if last > at then
    last, born = at, math.min(born, at * tick)
    moved = write_bucket(at, used, unit, rate, charged, born)
  end
  if permit and (unit ~= permit or rate ~= refill) then
    local permits = math.floor(used / unit)
    whole = last + math.ceil(used / rate) - at
    used = math.min(permits * permit + math.min(permit, math.ceil((used - permits * unit) * permit / unit)), 2 ^ 52)
    unit, rate = permit, refill
  end
  used = used - (at - last) * rate
  if used <= 0 or whole <= 0 then return at, 0, math.huge, now % 2 ^ 51, now, moved end
  return at, used, whole, charged, born, moved, unit, rate
end
