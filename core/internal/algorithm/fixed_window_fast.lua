-- FixedWindow, in the common cases, at half the cost of fixed_window.lua: see decide_fast.lua.
--
-- args      cost of all calls together, cost of one call, max, window (microseconds)
-- reply     a string: I7 now (microseconds), I7 start of the window, I6 permits used in it before
-- uncommon  the clock stepped back, or the value is no state of ours
-- state     as in fixed_window.lua
fast.fw1 = function(state, now, asked, cost, max, window)
  local start, used = now, 0
  if state then
    if #state ~= 13 then return -1 end
    start, used = struct.unpack('<I7I6', state)
    if start > now then return -1 end
    if used == 0 or now - start >= window then start, used = now, 0 end
  end

  local charge = asked
  if used + asked > max then charge = math.floor((max - used) / cost) * cost end
  local reply = struct.pack('<I7I7I6', now, start, used)
  if charge <= 0 then return reply end
  return reply, charge / cost, struct.pack('<I7I6', start, used + charge), string.format('%d', (start + window) / 1000 + 1)
end
