-- SlidingLog: never more than max permits in any span of window microseconds, to the microsecond.
--
-- args      max, window (microseconds), note
-- state     see sliding_log_state.lua
algorithms.sl3 = function(key, now, cost, max, window, note)
  max, window = max + 0, window + 0
  local time, newest, number, _, stepped = read_log(key, now)
  local dead = time - window
  local used = newest and redis.call('ZCOUNT', key, dead + 1, '+inf') or 0
  if used == 0 then time, number = now, 0 end

  local anchored = stepped and function() write_shift(key, time, now) end or nil
  local left, reset = max - used, used > 0 and newest + window - time or 0
  local missing = used + cost - max
  if missing > 0 then
    local wait = window
    if missing <= used then
      local at = redis.call('ZCARD', key) - used + missing - 1
      wait = redis.call('ZRANGE', key, at, at, 'WITHSCORES')[2] + window - time
    end
    return {retry = wait, left = left, reset = reset, anchored = anchored}
  end

  local position = math.max(number + 1, time) + cost
  local function add()
    if used == 0 then redis.call('DEL', key) else redis.call('ZREMRANGEBYSCORE', key, 0, dead) end
    if anchored then anchored() end
    local members = {}
    for at = position - cost + 1, position do
      members[#members + 1] = time
      members[#members + 1] = struct.pack('>I7', at) .. (at == position and note or '')
      if #members == 2000 or at == position then
        redis.call('ZADD', key, unpack(members))
        members = {}
      end
    end
  end
  return {retry = 0, left = left, reset = reset, anchored = anchored, charged = add, charged_reset = window, position = position}
end
