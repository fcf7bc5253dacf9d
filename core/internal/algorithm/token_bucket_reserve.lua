-- Reserves permits of a TokenBucket: they are taken now and used when their turn comes. The turn
-- comes when one permit is available; the rest of a large cost delays the next caller. If the turn
-- came without a permit, as in Guava, one call more than the burst would pass at once, and a
-- reservation of one permit could succeed where decide.lua refuses.
--
-- KEYS[1]   the counter
-- ARGV      patience (microseconds), cost, burst, permit, refill, tick; the last four as in
--           token_bucket.lua
-- reply     now (microseconds since the epoch), retry after (microseconds, 0: reserved; otherwise
--           its turn comes after patience, and nothing was taken), permits left, reset after, wait
--           until its turn (microseconds), position of the charge
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local cost = ARGV[2] + 0
local answer = algorithms.tb4(KEYS[1], now, cost, ARGV[3], ARGV[4], ARGV[5], ARGV[6], nil, ARGV[1] + 0)
local left, reset, position = answer.left, answer.reset, 0

local function write(state, lives)
  redis.call('SET', KEYS[1], state, 'PXAT', math.floor((now + lives) / 1000) + 1)
end

if answer.charged then
  write(answer.charged, answer.charged_reset)
  left, reset, position = left - cost, answer.charged_reset, answer.position
elseif cost > 0 and answer.anchored then
  write(answer.anchored, reset)
end
return {now, answer.retry, math.max(0, left), reset, answer.wait, position}
