-- Writes marks: see package marks. Of two marks of one subject, the one with the newer number stays.
--
-- KEYS[1]   a hash of the marks, by their fields. Four more fields are #, the latest number; @, the ID
--           of the latest change; rate, a second and how many bans by rules were new in it; and born,
--           when the hash was new
-- KEYS[2]   a sorted set of the fields of operators' marks and of removals, by their ends
-- KEYS[3]   a sorted set of the fields of bans by rules, by their ends
-- KEYS[4]   a stream of the latest changes: m, a mark that was written, or gone, one that made room
-- ARGV      the largest number of marks; how many bans by rules may be new in a second; about how many
--           changes to keep; and for each mark seven arguments: its field; its number, or 0 for an act
--           now; when the act was done, or 0; when the mark ends, or 0 if it does not; how long it
--           lasts from now, or 0; 1 if it is a ban by a rule, 2 if it is a removal of a mark that
--           the process does not know, else 0; its text.
--           Times are in microseconds.
-- reply     the time (microseconds), and for each mark what became of it and what was there before,
--           both as they are stored, or ''. What became of it is 'ended' if its end has passed, 'full'
--           if there is no room, and '' if what is there is newer, or there is nothing to remove.
-- keeps     the sorted sets and the stream tell of marks in the hash only
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local marks, ends, bans, changes = unpack(KEYS)
local most, atonce, kept = ARGV[1] + 0, ARGV[2] + 0, ARGV[3]

-- In the first minute of a hash, the marks of an earlier one may not be written back yet.
local lately = 60000000

local function int(n) return string.format('%.0f', n) end
local function change(what, mark)
  redis.call('HSET', marks, '@', redis.call('XADD', changes, 'MAXLEN', '~', kept, '*', what, mark))
end
local function drop(set, field)
  redis.call('HDEL', marks, field)
  redis.call('ZREM', set, field)
end

local last, born = tonumber(redis.call('HGET', marks, '#') or nil), tonumber(redis.call('HGET', marks, 'born') or nil)
if not last then
  last, born = 0, now
  redis.call('DEL', ends, bans, changes) -- they belong to a hash that was lost
end
-- Marks that have ended go without a change in the stream, because each process knows the ends.
for _, set in ipairs({ends, bans}) do
  for _, field in ipairs(redis.call('ZRANGEBYSCORE', set, '-inf', now, 'LIMIT', 0, 20)) do drop(set, field) end
end
local second, new = string.match(redis.call('HGET', marks, 'rate') or '0 0', '^(%d+) (%d+)$')
if second + 0 ~= math.floor(now / 1000000) then second, new = math.floor(now / 1000000), 0 end

-- room reports whether there is room for another mark. A ban by a rule makes room if it ends first.
local function room(byrule, ending)
  if redis.call('HLEN', marks) - 4 < most then return true end
  local first = redis.call('ZRANGE', bans, 0, 0, 'WITHSCORES')
  if not first[1] or byrule and first[2] + 0 >= ending then return false end
  change('gone', redis.call('HGET', marks, first[1]))
  drop(bans, first[1])
  return true
end

local reply, written = {now}, false
for i = 4, #ARGV - 6, 7 do
  local field, number, since, ending = ARGV[i], ARGV[i + 1] + 0, ARGV[i + 2] + 0, ARGV[i + 3] + 0
  local span, byrule, unknown, text = ARGV[i + 4] + 0, ARGV[i + 5] == '1', ARGV[i + 5] == '2', ARGV[i + 6]
  local before, became = redis.call('HGET', marks, field) or '', ''
  local nothing = number == 0 and unknown and before == '' and now - born > lately
  if number == 0 then
    number, since = math.max(last + 1, now), now
    if span > 0 then ending = now + span end
  end
  if nothing then
    -- There is nothing to remove.
  elseif before == '' or number > tonumber(string.match(before, '^%d+')) then
    if ending > 0 and ending <= now then
      became = 'ended'
    elseif before == '' and (byrule and new + 0 >= atonce or not room(byrule, ending)) then
      became = 'full'
    else
      written = true
      became = int(number) .. ' ' .. int(since) .. ' ' .. int(ending) .. ' ' .. text
      last = math.max(last, number)
      -- A full Redis lets a script go on that has written: operators act nevertheless.
      if ARGV[i + 1] == '0' then redis.call('HDEL', marks, '') end
      if byrule and before == '' then new = new + 1 end
      change('m', became) -- first, so that without the right to XADD nothing is written
      redis.call('HSET', marks, field, became)
      redis.call('ZREM', ends, field)
      redis.call('ZREM', bans, field)
      if ending > 0 then redis.call('ZADD', byrule and bans or ends, ending, field) end
    end
  end
  reply[#reply + 1] = became
  reply[#reply + 1] = before
end
if not written then return reply end -- so that a full Redis, too, answers
redis.call('HSET', marks, '#', int(last), 'rate', int(second) .. ' ' .. int(new), 'born', int(born))

-- The keys live as long as the last mark, and for ever if one has no end.
local lasting = redis.call('HLEN', marks) - 4 > redis.call('ZCARD', ends) + redis.call('ZCARD', bans)
local dies = now
for _, set in ipairs({ends, bans}) do
  local latest = redis.call('ZREVRANGE', set, 0, 0, 'WITHSCORES')
  if latest[1] then dies = math.max(dies, latest[2] + 0) end
end
for _, key in ipairs(KEYS) do
  if lasting then redis.call('PERSIST', key) else redis.call('PEXPIREAT', key, math.floor(dies / 1000) + 60000) end
end
return reply
