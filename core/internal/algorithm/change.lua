-- Changes counters after calls: it gives back what was charged, renews slots, and begins or ends pauses.
--
-- KEYS      the counters, each once. Behind them the record, if there is one
-- ARGV[1]   '', or struct I7 for how long the record is kept (microseconds)
-- ARGV      for each counter its algorithm, and struct: of a charge I7 permits to give back, I7 when they
--           were charged (microseconds), I7 position, I7 1 if these are all of its permits, I7 1 if they
--           come back even if a bucket is overdrawn; then four I7 that are the algorithm's args; and its
--           mark. For what else can be changed, see the algorithms
-- reply     now (microseconds since the epoch); then the state of each counter as found, '' if it is no
--           string
-- record    of the reply, as in decide.lua
-- keeps     a counter is never left with less than other calls used. Nothing is written before everything
--           is decided
--
-- An algorithm has a change. It takes the state (false: there is none, or no string), now, the nine
-- numbers, the key and the mark, and changes nothing. It returns nil if there is nothing to change, -1 if
-- the key holds no counter, and otherwise the state to write ('' to delete the key), or a function that
-- changes a key of another type; and when that expires (microseconds). If its memory is full, Redis
-- refuses the first write of a script that may need memory, but not later ones. So such a function
-- begins with a write that needs none.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local states = redis.call('MGET', unpack(KEYS))
local last, written, expires = #KEYS, {}, {}
local kept = ARGV[1] ~= ''
if kept then
  if states[last] then return cmsgpack.unpack(states[last]) end
  last = last - 1
end

local reply = {now}
for i = 1, last do
  local tag, arg = ARGV[2 * i], ARGV[2 * i + 1]
  if not states[i] and not sets[tag] then redis.call('GET', KEYS[i]) end -- which fails if the key holds another type
  local n = {struct.unpack('<I7I7I7I7I7I7I7I7I7', arg)}
  written[i], expires[i] =
    changes[tag](states[i], now, n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], KEYS[i], string.sub(arg, 64))
  if written[i] == -1 then error('NOTACOUNTER ' .. KEYS[i]) end
  reply[i + 1] = states[i] or ''
end
for i = 1, last do
  local state = written[i]
  if state == '' then
    redis.call('DEL', KEYS[i])
  elseif type(state) == 'function' then
    state()
    redis.call('PEXPIREAT', KEYS[i], math.floor(expires[i] / 1000) + 1)
  elseif state then
    redis.call('SET', KEYS[i], state, 'PXAT', math.floor(expires[i] / 1000) + 1)
  end
end
if kept then
  local ends = now + struct.unpack('<I7', ARGV[1])
  redis.call('SET', KEYS[last + 1], cmsgpack.pack(reply), 'PXAT', math.floor(ends / 1000) + 1)
end
return reply
