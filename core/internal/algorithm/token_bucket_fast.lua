-- TokenBucket, in the common cases, at half the cost of token_bucket.lua: see decide_fast.lua.
--
-- args      units of all calls together, units of one call, units per permit, units refilled per
--           tick, tick (microseconds), units of the full bucket
-- reply     a string: I7 now (microseconds), I7 units used before, I7 position before. Two replies
--           save the packing (5 to 8 % of the script) if ticks are of 1: the state as written,
--           whose tick is now, if all calls are charged; the units used, as an integer, if none
--           fits
-- uncommon  another rate, the clock stepped back, or the value is no state of ours
fast.tb4 = function(state, now, asked, cost, permit, refill, tick, full)
  local at = now
  if tick ~= 1 then at = (now - now % tick) / tick end

  local used, charged, born = 0, nil, now
  if state then
    if #state ~= 39 then return -1 end
    local last, unit, rate
    last, used, unit, rate, charged, born = struct.unpack('<I7I7I6I5I7I7', state)
    if unit ~= permit or rate ~= refill or last > at or used > 2 ^ 52 or charged > 2 ^ 52 or born >= 2 ^ 53 then return -1 end
    used = used - (at - last) * refill
    if used <= 0 then used, charged, born = 0, nil, now end
  end

  charged = charged or now % 2 ^ 51
  local needed, all = used + asked, true
  if needed > full then
    local calls = math.floor((full - used) / cost)
    if calls < 1 then return tick == 1 and used or struct.pack('<I7I7I7', now, used, charged) end
    needed, all = used + calls * cost, false
  end
  local position = charged + (needed - used) / permit
  if position > 2 ^ 52 then return -1 end
  local written = struct.pack('<I7I7I6I5I7I7', at, needed, permit, refill, position, born)
  local reply = all and tick == 1 and written or struct.pack('<I7I7I7', now, used, charged)
  return reply, (needed - used) / cost, written, string.format('%d', (at + needed / refill) * tick / 1000 + 1)
end
