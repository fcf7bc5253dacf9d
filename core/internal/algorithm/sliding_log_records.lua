-- Lists the calls that count in a SlidingLog now, newest first.
--
-- KEYS[1]   the counter
-- ARGV[1]   the window (microseconds)
-- reply     for each call three: when (microseconds since the epoch), its permits, its note
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local entries, reply = redis.call('LRANGE', KEYS[1], 0, -1), {}
local newest, moved, moved_to, _ = now, 0, 0, nil
for at = #entries, 1, -1 do
  local when, position, own = struct.unpack('<I7I7I2', entries[at])
  if when >= 2 ^ 53 then error('NOTACOUNTER ' .. KEYS[1]) end
  if when == 0 then -- the element behind the entries: see sliding_log.lua
    _, _, moved, moved_to = struct.unpack('<I7I7I7I7', entries[at])
  else
    if position <= moved then when = moved_to end
    newest = math.max(newest, when)
    if when <= newest - ARGV[1] then break end
    reply[#reply + 1] = math.min(when, now)
    reply[#reply + 1] = own
    reply[#reply + 1] = string.sub(entries[at], 17)
  end
end
return reply
