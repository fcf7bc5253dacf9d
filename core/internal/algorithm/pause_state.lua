-- The state of a pause, for the scripts that read it or write it.
--
-- state     a string, little-endian: I7 end of the pause (microseconds), I7 last change
--           (microseconds), I1 refusals in a row, I7 when they are forgotten (microseconds). Behind
--           that, if an operator began the pause: I1 length of the author, author, note
-- keeps     a pause ends before its refusals are forgotten

-- Returns the state in a key, or that of no pause. If the clock stepped back, the pause lasts as
-- long as it would have, and moved is set.
local function read_pause(key, now)
  local text = redis.call('GET', key)
  if not text then return {ends = 0, refusals = 0, forgotten = 0, by = ''} end
  local ends, last, refusals, forgotten = struct.unpack('<I7I7I1I7', text)
  if last >= 2 ^ 53 or ends > forgotten or forgotten >= 2 ^ 53 then error('NOTACOUNTER ' .. key) end
  local by = string.sub(text, 23)
  if #by > 511 or by ~= '' and string.byte(by) >= #by then error('NOTACOUNTER ' .. key) end
  local back = math.max(0, last - now)
  return {ends = math.max(0, ends - back), refusals = refusals, forgotten = math.max(0, forgotten - back), by = by, moved = back > 0}
end

local function pack_pause(p, now) return struct.pack('<I7I7I1I7', p.ends, now, p.refusals, p.forgotten) .. p.by end
