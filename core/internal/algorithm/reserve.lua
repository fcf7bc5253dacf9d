-- Reserves permits of a TokenBucket: they are taken now, to be used when their turn comes. The turn
-- comes when one permit is there. Later calls wait for the rest of a large cost.
--
-- KEYS[1]   the counter
-- ARGV      patience (microseconds), cost, burst, permit, refill, tick; the last four as in
--           token_bucket.lua
-- reply     now (microseconds since the epoch), retry after (microseconds; 0: reserved; otherwise
--           the turn would come after patience, and nothing was taken), permits left, reset after
--           (microseconds), wait until the turn (microseconds), position of the charge
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local cost = ARGV[2] + 0
local retry, left, reset, reset_charged, charge, position, anchored, wait, _, lives, lives_charged = algorithms.tb2(KEYS[1], now, cost,
  ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[1] + 0)
if cost > 0 and retry == 0 then
  redis.call('SET', KEYS[1], charge, 'PXAT', math.floor((now + (lives_charged or reset_charged)) / 1000) + 1)
  left, reset = left - cost, reset_charged
elseif cost > 0 and anchored then
  redis.call('SET', KEYS[1], anchored, 'PXAT', math.floor((now + (lives or reset)) / 1000) + 1)
end
return {now, retry, math.max(0, left), reset, wait, cost > 0 and retry == 0 and position or 0}
