-- Writes marks: see package marks. Of two marks of one subject, the one with the higher number stays.
--
-- KEYS[1]   a hash of the marks, by their fields. Four more fields are epoch, when the hash was made;
--           #, the latest number; @, the ID of the latest change; and rate, a second and how many bans by
--           rules were new in it
-- KEYS[2]   a sorted set of the fields of operators' marks, by their ends
-- KEYS[3]   a sorted set of the fields of what makes room for them, by their ends: bans by rules, and
--           removals
-- KEYS[4]   a stream of the latest changes: m, a mark that was written, or gone, one that made room
-- ARGV      the largest number of marks; how many bans by rules may be new in a second, or 0 if the
--           marks are written back; about how many changes to keep; and for each mark seven arguments:
--           its field; its number or, for an act now, that of the mark that the process knows, or 0;
--           when the act was done, or 0 for now; when the mark ends, or 0 if it does not; how long it
--           lasts from now, or 0; ban if it is one by a rule, removal if it is one, else empty; its
--           text. Times are in microseconds.
-- reply     the time (microseconds), and for each mark what became of it and what was there before,
--           both as they are stored, or ''. The first is 'ended' if the mark's end has passed, 'full' if
--           there is no room, and '' if a newer mark is there, or an operator's ban that a rule's would
--           replace. A removal is written even if there is nothing to remove, because Redis may
--           have lost a mark that others will write back.
-- keeps     the sorted sets have fields of the hash only
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local marks, ends, spare, changes = unpack(KEYS)
local most, atonce, kept = ARGV[1] + 0, ARGV[2] + 0, ARGV[3]

-- numberof returns the number of a stored mark, or 0 if it is not one of ours.
local function numberof(mark)
  local n = tonumber(string.match(mark, '^%d+')) or 0
  return n < 2 ^ 53 and n or 0
end
local function int(n) return string.format('%.0f', n) end
local function change(what, mark)
  redis.call('HSET', marks, '@', redis.call('XADD', changes, 'MAXLEN', '~', kept, '*', what, mark))
end
local function drop(set, field)
  redis.call('HDEL', marks, field)
  redis.call('ZREM', set, field)
end

local last, epoch = tonumber(redis.call('HGET', marks, '#') or nil), nil
if not last then
  last, epoch = 0, now
  redis.call('DEL', ends, spare, changes) -- they belong to a hash that was lost
end
-- A full Redis lets a script go on that has written: operators act nevertheless.
for i = 4, #ARGV - 6, 7 do
  if ARGV[i + 2] == '0' and ARGV[i + 5] ~= 'ban' then redis.call('HDEL', marks, '') end
end
-- Marks that have ended go without a change in the stream, because each process knows the ends.
for _, set in ipairs({ends, spare}) do
  for _, field in ipairs(redis.call('ZRANGEBYSCORE', set, '-inf', now, 'LIMIT', 0, 20)) do drop(set, field) end
end
local second, new = string.match(redis.call('HGET', marks, 'rate') or '', '^(%d+) (%d+)$')
if tonumber(second) ~= math.floor(now / 1000000) then second, new = math.floor(now / 1000000), 0 end

-- room reports whether there is room for another mark. A ban by a rule makes room if it ends first.
local function room(byrule, ending)
  if redis.call('HLEN', marks) - 4 < most then return true end
  local first = redis.call('ZRANGE', spare, 0, 0, 'WITHSCORES')
  if not first[1] or byrule and first[2] + 0 >= ending then return false end
  change('gone', redis.call('HGET', marks, first[1]))
  drop(spare, first[1])
  return true
end

local reply, written = {now}, false
for i = 4, #ARGV - 6, 7 do
  local field, number, since, ending = ARGV[i], ARGV[i + 1] + 0, ARGV[i + 2] + 0, ARGV[i + 3] + 0
  local span, class, text = ARGV[i + 4] + 0, ARGV[i + 5], ARGV[i + 6]
  local byrule = class == 'ban'
  local before, became = redis.call('HGET', marks, field) or '', ''
  local isnew = byrule and before == '' and atonce > 0
  if since == 0 then
    number, since = math.max(last + 1, now, number + 1), now
    if span > 0 then ending = now + span end
  end
  if byrule and (redis.call('ZSCORE', ends, field) or 0) + 0 > now then
    -- An operator's ban holds.
  elseif before == '' or number > numberof(before) then
    if ending > 0 and ending <= now then
      became = 'ended'
    elseif isnew and new + 0 >= atonce or before == '' and not room(byrule, ending) and class ~= 'removal' then
      became = 'full'
    else
      written = true
      became = int(number) .. ' ' .. int(since) .. ' ' .. int(ending) .. ' ' .. text
      last = math.max(last, number)
      if isnew then new = new + 1 end
      change('m', became) -- first, so that without the right to XADD nothing is written
      redis.call('HSET', marks, field, became)
      redis.call('ZREM', ends, field)
      redis.call('ZREM', spare, field)
      if ending > 0 then redis.call('ZADD', class == '' and ends or spare, ending, field) end
    end
  end
  reply[#reply + 1] = became
  reply[#reply + 1] = before
end
if not written then return reply end
redis.call('HSET', marks, '#', int(last), 'rate', int(second) .. ' ' .. int(new))
if epoch then redis.call('HSET', marks, 'epoch', int(epoch)) end

-- The keys live for a day longer than the last mark, so that no process takes its end for a loss, and for
-- ever if one has no end.
local lasting = redis.call('HLEN', marks) - 4 > redis.call('ZCARD', ends) + redis.call('ZCARD', spare)
local dies = now
for _, set in ipairs({ends, spare}) do
  local latest = redis.call('ZREVRANGE', set, 0, 0, 'WITHSCORES')
  if latest[1] then dies = math.max(dies, latest[2] + 0) end
end
for _, key in ipairs(KEYS) do
  if lasting then redis.call('PERSIST', key) else redis.call('PEXPIREAT', key, math.floor(dies / 1000) + 86400000) end
end
return reply
