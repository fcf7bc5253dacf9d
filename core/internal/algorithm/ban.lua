-- Ban: after refusals in a number of consecutive windows, all calls of a subject are refused for a
-- while. Each further ban lasts twice as long.
--
-- args      number of windows (0: bans by hand only), span of the first ban, longest span, window;
--           all but the first in microseconds
-- state     a string, little-endian: I7 end of the ban (microseconds), I7 last strike or ban by
--           hand (microseconds), I2 strikes in a row, I1 bans so far, I7 when all of that is
--           forgotten (microseconds)
-- keeps     a ban ends before it is forgotten
algorithms.bn1 = function(key, now, _, after, span, longest, window)
  local state = redis.call('GET', key)
  after, span, longest, window = after + 0, span + 0, longest + 0, window + 0
  local ends, last, strikes, bans, forgotten, anchored = 0, 0, 0, 0, 0, nil
  if state then
    ends, last, strikes, bans, forgotten = struct.unpack('<I7I7I2I1I7', state)
    if #state ~= 24 or last >= 2 ^ 53 or ends > forgotten or forgotten >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
    if last > now then
      -- The clock stepped back: the ban lasts as long as it would have.
      ends, forgotten, last = math.max(0, ends - (last - now)), math.max(0, forgotten - (last - now)), now
      anchored = struct.pack('<I7I7I2I1I7', ends, last, strikes, bans, forgotten)
    end
  end
  local answer = {
    no_permits = true, watches = true, retry = math.max(0, ends - now), left = 0, reset = math.max(0, forgotten - now), anchored = anchored,
  }
  if ends > now or after == 0 then return answer end

  if answer.reset == 0 then ends, last, strikes, bans = 0, 0, 0, 0 end
  local this, struck_in = math.floor(now / window), math.floor(last / window)
  if strikes > 0 and struck_in == this then return answer end
  strikes = strikes > 0 and struck_in == this - 1 and strikes + 1 or 1
  if strikes >= after then
    ends, strikes, bans = now + math.min(span * 2 ^ math.min(bans, 40), longest), 0, math.min(bans + 1, 255)
  end
  forgotten = math.max(forgotten, math.max(ends, now) + longest)
  answer.struck = struct.pack('<I7I7I2I1I7', ends, now, strikes, bans, forgotten)
  answer.struck_retry, answer.struck_reset = math.max(0, ends - now), forgotten - now
  return answer
end
