-- Pause: no call goes out to a server until a time is over, because the server asked for that. A call
-- passes, and nothing is charged.
--
-- args      none
-- state     a string, little-endian: I7 end of the pause (microseconds), I7 last change
--           (microseconds), I1 refusals in a row, I7 when they are forgotten (microseconds). Behind
--           that, if an operator began the pause: I1 length of the author, author, note
-- keeps     a pause ends before its refusals are forgotten

-- Returns what a state says: end, refusals, when they are forgotten, and the operator's part. If the
-- clock stepped back, the pause lasts as long as it would have, and the last value is true.
local function read_pause(state, now)
  if #state < 22 then return nil end
  local ends, last, refusals, forgotten = struct.unpack('<I7I7I1I7', state)
  local by = string.sub(state, 23)
  if last >= 2 ^ 53 or ends > forgotten or forgotten >= 2 ^ 53 then return nil end
  if #by > 511 or by ~= '' and string.byte(by) >= #by then return nil end
  local back = math.max(0, last - now)
  return math.max(0, ends - back), refusals, math.max(0, forgotten - back), by, back > 0
end

steps.ps1 = function(state, now, ask)
  if not state then return ask end
  local ends, refusals, forgotten, by, moved = read_pause(state, now)
  if not ends then return -1 end
  local written = moved and struct.pack('<I7I7I1I7', ends, now, refusals, forgotten) .. by or nil
  return ends > now and 0 or ask, written, string.format('%d', math.max(now, forgotten) / 1000 + 1)
end

-- It begins a pause, or makes it longer: it lasts for a span from now, or until the pause in force
-- ends, whichever is later. Or it forgets the refusals before a pause, because the server has answered a
-- call after it; a pause in force stays.
--
-- args      1 to begin, 0 to forget; the span (microseconds), or 0 if the server named none; 1 if it
--           refused a call, 0 if it only announced the pause; the span of a first refusal without one,
--           which doubles with each refusal after the pause of the last one, and the longest span
--           (microseconds); for an operator's pause what the state says about the operator
-- keeps     a pause never becomes shorter, and refusals during a pause count once
changes.ps1 = function(state, now, begins, span, refused, base, longest, _, _, _, _, _, author)
  local ends, refusals, forgotten, by = 0, 0, 0, ''
  if state then ends, refusals, forgotten, by = read_pause(state, now) end
  if not ends then return -1 end
  if begins == 0 then return state and ends <= now and '' or nil end
  if forgotten <= now then refusals = 0 end
  if ends <= now then
    if span == 0 then span = math.min(base * 2 ^ math.min(refusals, 40), longest) end
    if refused == 1 then refusals = math.min(refusals + 1, 255) end
  end
  if now + span > ends then ends, by = now + span, author end
  forgotten = math.max(forgotten, refused == 1 and ends + longest or ends)
  if forgotten <= now then return end
  return struct.pack('<I7I7I1I7', ends, now, refusals, forgotten) .. by, forgotten
end
