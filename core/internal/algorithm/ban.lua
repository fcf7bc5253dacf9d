-- Ban: who is refused in so many windows one after the other is refused altogether for a while, each time twice as long.
--
-- args      windows one after the other (0: bans by hand alone), span of the first ban, longest span, window (microseconds)
-- state     a string, little-endian: I7 end of the ban (microseconds), I7 last strike or ban by hand (microseconds), I2
--           strikes in a row, I1 bans so far. It is forgotten when the longest span has passed since the later of the two
algorithms.bn1 = function(key, now, _, after, span, longest, window)
  local state = redis.call('GET', key)
  after, span, longest, window = after + 0, span + 0, longest + 0, window + 0
  local ends, last, strikes, bans, anchored = 0, 0, 0, 0, nil
  if state then
    ends, last, strikes, bans = struct.unpack('<I7I7I2I1', state)
    if #state ~= 17 or last >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
    if last > now then
      -- The clock stepped back: the ban lasts as long as it was to.
      ends, last = math.max(0, ends - (last - now)), now
      anchored = struct.pack('<I7I7I2I1', ends, last, strikes, bans)
    end
  end
  local reset = last > 0 and math.max(0, math.max(ends, last) + longest - now) or 0
  if ends > now then return ends - now, 0, reset, nil, nil, anchored end

  if after == 0 then return 0, 0, reset, nil, nil, anchored end
  if reset == 0 then ends, last, strikes, bans = 0, 0, 0, 0 end
  local this, struck_in = math.floor(now / window), math.floor(last / window)
  if strikes > 0 and struck_in == this then return 0, 0, reset, nil, nil, anchored end
  strikes = strikes > 0 and struck_in == this - 1 and strikes + 1 or 1
  if strikes >= after then
    ends, strikes, bans = now + math.min(span * 2 ^ math.min(bans, 40), longest), 0, math.min(bans + 1, 255)
  end
  return 0, 0, reset, nil, nil, anchored, struct.pack('<I7I7I2I1', ends, now, strikes, bans), math.max(ends, now) + longest - now
end
