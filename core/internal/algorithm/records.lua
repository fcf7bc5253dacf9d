-- Lists the calls that count in a SlidingLog now, newest first.
--
-- KEYS[1]   the counter
-- ARGV[1]   the window (microseconds)
-- reply     for each call three: when (microseconds since the epoch), its permits, its note
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local entries, reply = redis.call('LRANGE', KEYS[1], 0, -1), {}
local newest = now
for at = #entries, 1, -1 do
  local when, _, own = struct.unpack('<I7I7I2', entries[at])
  if when >= 2 ^ 53 then error('NOTACOUNTER ' .. KEYS[1]) end
  if at == #entries then newest = math.max(now, when) end
  if when <= newest - ARGV[1] then break end
  reply[#reply + 1] = math.min(when, now)
  reply[#reply + 1] = own
  reply[#reply + 1] = string.sub(entries[at], 17)
end
return reply
