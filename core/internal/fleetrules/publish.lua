-- Writes a new version of a fleet's rules if the current one is the one that the author read. The
-- script can be run again if its reply was lost: it does not write the same version twice. A value
-- that is not a document of this form stays unchanged.
--
-- KEYS[1]   the document
-- ARGV[1]   the number of the version that was read; 0: none
-- ARGV[2]   its time (microseconds since the epoch); 0: none
-- ARGV[3]   the checksum of ARGV[4]
-- ARGV[4]   the line about the author, and the text
-- reply     1 if the version is written, 0 if there is another one or something else; then the head
--           of the new version, or the beginning of what was found
local found = redis.call('GETRANGE', KEYS[1], 0, 4095)
local version, at = 0, 0
if found ~= '' then
  local number, time, sum = string.match(found, '^rd1 (%d+) (%d+) (%x+)\n')
  if not number or #number > 15 or #time > 16 then return {0, found} end
  version, at = number + 0, time + 0
  if version == ARGV[1] + 1 and sum == ARGV[3] then return {1, found} end
end
if version ~= ARGV[1] + 0 or at ~= ARGV[2] + 0 then return {0, found} end
local clock = redis.call('TIME')
at = math.max(clock[1] * 1000000 + clock[2], at + 1)
local head = string.format('rd1 %.0f %.0f %s\n', version + 1, at, ARGV[3])
redis.call('SET', KEYS[1], head .. ARGV[4])
return {1, head}
