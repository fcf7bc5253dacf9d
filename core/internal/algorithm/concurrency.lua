-- Concurrency: never more than max calls in flight. Holders renew their slots; a slot that is not
-- renewed for window microseconds is free.
--
-- args      max, window (microseconds), holder
-- state     a sorted set of the holders, by when they took or renewed their slot (microseconds).
--           Holders that did not renew in time stay in the set until the next charge
-- reply     a string, little-endian, about the time before: I7 slots held, I7 when the newest one was
--           taken or renewed, I7 when the one was with whose end the call fits (0: none, or it fits)
sets.cc1 = true

-- Returns when a slot was last taken or renewed, and whether that is ahead of the clock, because it
-- stepped back. Without slots of ours, it returns nil.
local function read_slots(key, now)
  local last = redis.pcall('ZREVRANGE', key, 0, 0, 'WITHSCORES')
  if last.err then return allow_other_type(last.err) end
  local newest = (last[2] or now) + 0
  if newest < 2 ^ 50 or newest >= 2 ^ 53 then return nil end -- a time of this century
  return newest, newest > now
end

-- Takes a slot, or renews it, and frees those that are not renewed. If the clock stepped back, every
-- slot that is held counts as renewed now.
local function hold(key, now, window, holder, newest)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', math.max(newest, now) - window)
  if newest > now then
    for _, of in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZADD', key, now, of) end
  end
  if holder then redis.call('ZADD', key, now, holder) end
end

steps.cc1 = function(_, now, ask, unit, max, window, _, _, _, key, holder)
  local newest, stepped = read_slots(key, now)
  if not newest then return -1 end
  local dead = math.max(newest, now) - window
  local held = redis.call('ZCOUNT', key, dead + 1, '+inf')

  local missing, freeing = held + unit - max, 0
  if missing > 0 and missing <= held then
    freeing = stepped and now or redis.call('ZRANGEBYSCORE', key, dead + 1, '+inf', 'WITHSCORES', 'LIMIT', missing - 1, 1)[2] + 0
  end
  local reply = struct.pack('<I7I7I7', held, math.min(newest, now), freeing)
  local fits = ask > 0 and missing <= 0
  if not fits and not stepped then return 0, nil, nil, reply end
  local function take() hold(key, now, window, fits and holder, newest) end
  return fits and 1 or 0, take, string.format('%d', (now + window) / 1000 + 1), reply
end

-- It renews the slot of a holder, or gives it back. A slot that was lost meanwhile is taken again, even
-- above the limit, because its call is still in flight.
--
-- args      1 to renew, 0 to give back, instead of the permits; window; holder
changes.cc1 = function(_, now, renews, _, _, _, _, _, window, _, _, key, holder)
  local newest = read_slots(key, now)
  if not newest then return -1 end
  if renews == 1 then
    return function() hold(key, now, window, holder, newest) end, now + window
  end
  if not redis.call('ZSCORE', key, holder) then return end
  local last = redis.call('ZREVRANGE', key, 0, 1, 'WITHSCORES')
  if last[1] == holder then newest = (last[4] or newest) + 0 end -- without the holder; alone, the key goes with it
  return function() redis.call('ZREM', key, holder) end, now + math.max(0, math.min(newest + window - now, window))
end
