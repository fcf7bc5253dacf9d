-- Concurrency: never more than max calls in flight. Holders renew their slots; a slot that is not
-- renewed for window microseconds is free.
--
-- args      max, window (microseconds), holder
-- state     a sorted set of the holders, by when they took or renewed their slot (microseconds).
--           Holders that did not renew in time stay in the set until the next charge
algorithms.cc1 = function(key, now, cost, max, window, holder)
  max, window = max + 0, window + 0
  local newest = now
  local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
  if last[2] then
    newest = last[2] + 0 -- a time of this century
    if newest < 2 ^ 50 or newest >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
  end
  local dead = math.max(newest, now) - window
  local held = last[2] and redis.call('ZCOUNT', key, dead + 1, '+inf') or 0

  local anchored = nil
  if newest > now then
    -- The clock stepped back: every slot counts as renewed now.
    anchored = function()
      redis.call('ZREMRANGEBYSCORE', key, '-inf', dead)
      for _, of in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZADD', key, now, of) end
    end
  end
  local reset = held > 0 and math.min(newest, now) + window - now or 0

  local missing = held + cost - max
  if missing > 0 then
    local wait = window
    if missing <= held and not anchored then
      wait = redis.call('ZRANGEBYSCORE', key, dead + 1, '+inf', 'WITHSCORES', 'LIMIT', missing - 1, 1)[2] + window - now
    end
    return {retry = wait, left = max - held, reset = reset, anchored = anchored}
  end
  local function take()
    if anchored then anchored() else redis.call('ZREMRANGEBYSCORE', key, '-inf', dead) end
    redis.call('ZADD', key, now, holder)
  end
  return {retry = 0, left = max - held, reset = reset, anchored = anchored, charged = take, charged_reset = window}
end
