-- Lists the calls that count in a SlidingLog now, newest first.
--
-- KEYS[1]   the counter
-- ARGV[1]   the window (microseconds)
-- reply     for each call three: when (microseconds since the epoch), its permits, its note
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local time, _, before = read_log(KEYS[1], now)
if not time then error('NOTACOUNTER ' .. KEYS[1]) end
local all, reply = redis.call('ZRANGEBYSCORE', KEYS[1], time - ARGV[1] + 1, '+inf', 'WITHSCORES'), {}
for i = #all - 1, 1, -2 do
  local number = number_of(all[i])
  if number == before - 1 then
    reply[#reply - 1] = reply[#reply - 1] + 1
  else
    reply[#reply + 1] = all[i + 1] + now - time
    reply[#reply + 1] = 1
    reply[#reply + 1] = string.sub(all[i], 8)
  end
  before = number
end
return reply
