-- SlidingLog removes permits of a call, the last one last, because it has the note. It finds them by the
-- time and the position of the charge. Permits charged between two steps back of the clock are not found
-- after the second one.
algorithms.sl3 = function(key, now, charge, _, window)
  window = window + 0
  local time, newest, number, shift, stepped = read_log(key, now)
  if not newest or charge.position > number then return end

  -- Returns the members of the time at, and the first and the last one of the call, if it was charged then.
  local function charged_at(at)
    if at <= time - window or at > newest then return end
    local all = redis.call('ZRANGEBYSCORE', key, at, at)
    local first
    for i = 1, #all do
      local number, behind = number_of(all[i]), all[i + 1] and number_of(all[i + 1])
      first = first or i
      if behind ~= number + 1 then -- the last one of a call
        if number == charge.position then return all, first, i end
        first = nil
      end
    end
  end
  local all, first, last = charged_at(charge.at)
  if not all and shift > 0 then all, first, last = charged_at(charge.at + shift) end
  if not all then return end

  local upto = math.min(first + charge.cost - 1, last)
  if upto == last and charge.position == number then
    local before = first - last - 2
    newest = redis.call('ZRANGE', key, before, before, 'WITHSCORES')[2]
    if not newest or newest + 0 <= time - window then
      return {change = function() redis.call('DEL', key) end, lives = window}
    end
  end
  local function change()
    if stepped then write_shift(key, time, now) end
    for from = first, upto, 1000 do redis.call('ZREM', key, unpack(all, from, math.min(from + 999, upto))) end
  end
  return {change = change, lives = newest + window - time}
end
