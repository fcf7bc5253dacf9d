-- TokenBucket: a bucket of burst permits that starts full and refills continuously.
--
-- args      burst, permit (units), refill (units per tick), tick (microseconds: 1, or 1000 for
--           windows of an hour and more)
-- state     see token_bucket_state.lua
--
-- With patience (microseconds), the cost is taken at the next turn if that comes within patience,
-- and the table has the wait until then: see token_bucket_reserve.lua.
algorithms.tb4 = function(key, now, cost, burst, permit, refill, tick, debt, patience)
  burst, permit, refill, tick = burst + 0, permit + 0, refill + 0, tick + 0
  local at, used, whole, charged, born, moved = read_bucket(key, now, tick, permit, refill)

  -- Returns after how long a number of units have come back.
  local function after(units)
    local ticks = math.min(whole, math.ceil(units / refill))
    return ticks > 0 and (at + ticks) * tick - now or 0
  end
  -- Returns how many units may be in use in a bucket that holds full permits. No wait is longer than 71
  -- years, which the durations of all languages can hold.
  local function bound(full) return math.min(full * permit, math.floor(2 ^ 51 / tick) * refill, 2 ^ 52) end

  local answer = {
    retry = after(used + (cost - burst) * permit), left = math.floor((burst * permit - used) / permit), reset = after(used),
    anchored = moved,
  }
  if patience then
    answer.wait = cost > 0 and after(used + (1 - burst) * permit) or 0
    answer.retry = cost > 0 and math.max(0, answer.wait - patience, after(used + cost * permit - bound(math.huge))) or 0
  elseif debt then
    cost, answer.retry = math.max(0, math.min(cost, math.floor((bound(burst + debt) - used) / permit))), 0
  end
  if answer.retry > 0 or cost == 0 then return answer end

  -- If positions begin anew, earlier charges can no longer be given back.
  if charged + cost > 2 ^ 52 then charged, born = now % 2 ^ 51, now end
  used, charged, whole = used + cost * permit, charged + cost, math.huge
  answer.cost, answer.position, answer.charged_reset = cost, charged, after(used)
  answer.charged = write_bucket(at, used, permit, refill, charged, born)
  return answer
end
