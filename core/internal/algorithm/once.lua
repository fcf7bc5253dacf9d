-- Runs a script once for each record. If it is run again, it changes nothing and replies the same.
--
-- The code before this defines now, and run, a function of KEYS and ARGV that is the script.
--
-- KEYS      those of run; behind them the record
-- ARGV[1]   for how long the record is kept (microseconds)
-- ARGV      then those of run
-- reply     run's, which consists of integers from 0 on
-- state     of a record: a string, little-endian: I7 for each number of the reply
-- keeps     a reply of one number asks to be called again, and is not recorded. Nor is an error
local record = KEYS[#KEYS]
local replied = redis.call('GET', record)
if replied then
  local reply = {struct.unpack('<' .. string.rep('I7', #replied / 7), replied)}
  reply[#reply] = nil -- struct.unpack also returns where it ended
  return reply
end
local reply = run({unpack(KEYS, 1, #KEYS - 1)}, {unpack(ARGV, 2)})
if #reply > 1 then
  local written = struct.pack('<' .. string.rep('I7', #reply), unpack(reply))
  redis.call('SET', record, written, 'PXAT', math.floor((now + ARGV[1]) / 1000) + 1)
end
return reply
