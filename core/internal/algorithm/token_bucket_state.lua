-- The state of a TokenBucket, for the scripts that read more of it than its first part.
--
-- A bucket has a part for each rate, which holds what the calls at that rate and at all slower
-- rates use. When a rate is first used, its part begins as a copy of the fullest part. If the copy
-- may lack what slower calls use, nothing can be given back to it. From then on, calls are charged
-- to the part of their own rate and to the parts of faster rates. A call fits if its own part stays
-- within its burst, and each faster part within the larger of that burst and the burst of the last
-- call at the faster rate. So the calls at a rate and at all slower rates together never exceed
-- their largest burst plus what the rate brings back. With one number for all rates, the use came
-- back at the rate of the last writer: 1,000 GETs a second let 357 POSTs through a limit of 7 a
-- second in two seconds. With a counter for each rate, past use would be lost when a limit changes.
--
-- Units are in lowest terms, so they change with the rate. Without their number per permit, a
-- raised limit would read the use as a multiple of itself. A key expires when the use has come back
-- at the rates at which it was charged. So lowering a rate can let one more burst through, once,
-- because a refused call must not write and cannot extend the key's life.
--
-- Positions number the charged permits of all rates in order. In each part the oldest permits come
-- back first. So the used permits of a part have the last positions, except for its gaps: permits
-- that were given back, or were charged at a faster rate. Storing the time of a charge and the use
-- at that time would not be enough: permits of earlier charges that were refunded since would count
-- as refilled, and up to twice the burst passed at once. A charge copies the gaps without reading
-- them, which costs 3 to 5 % of the fast function.
--
-- state     a string, little-endian: I7 last tick; for the part of the slowest rate I7 units used,
--           I6 units per permit, I5 units refilled per tick, I5 burst; I7 position of the last
--           charge; I7 birth (microseconds). That is all of a bucket of one rate without gaps.
--           Otherwise I7 own, I7 kept and I2 number of gaps of that part, and for each gap, the
--           oldest first, I7 and I7: the positions after the first number, up to the second. Then
--           the other parts, slower ones first, each I7 units used, I6 units per permit, I5 units
--           refilled per tick, I5 burst, and from own on as above
-- own       how many permits were charged by calls at the part's own rate, and not given back. At
--           0, the part goes: it is as if its rate had not been used. 2^52: it stays
-- kept      how many permits between the ends of the oldest gap do not belong to it. Gaps beyond the
--           256 newest are merged into that one. Its number of permits stays exact, but not their
--           places, so they are assumed where least can be given back. If it begins at 0, nothing
--           in it can be given back
-- keeps     units used and positions are at most 2^52, so every sum here is exact in a double. The
--           positions begin with the time of the birth (modulo 2^51). So if the clock steps back,
--           the charges of a counter that was reset or forgotten are not taken for those of its
--           successor. There are at most 4 parts
--
-- The functions are created only when needed, because token_bucket.lua needs none of them for most
-- buckets. longest is the maximum number of ticks for which a part may be used up.
local function bucket_states(longest)
  local bucket = {}
  local max_parts, max_gaps, lasting = 4, 256, 2 ^ 52

  -- Reads the gaps of a part, and returns where they end in the state, or nil if they are not sound.
  local function read_gaps(part, state, charged, from)
    local count
    part.own, part.kept, count, from = struct.unpack('<I7I7I2', state, from)
    if part.own > lasting or count > max_gaps then return nil end
    local gaps = {struct.unpack('<' .. string.rep('I7I7', count), state, from)}
    from = table.remove(gaps)
    local before = 0
    for i = 1, #gaps, 2 do
      if gaps[i] < before or gaps[i + 1] <= gaps[i] then return nil end
      before = gaps[i + 1]
    end
    part.gaps = gaps
    return before <= charged and part.kept <= (gaps[2] or 0) - (gaps[1] or 0) and from or nil
  end

  -- Returns the last tick, the position of the last charge, the birth, and the parts.
  function bucket.read(key, state)
    local function check(sound)
      if not sound then error('NOTACOUNTER ' .. key) end
    end
    local last, used, permit, refill, burst, charged, born, from = struct.unpack('<I7I7I6I5I5I7I7', state)
    local parts, speed = {}, 0
    check(last < 2 ^ 53 and charged <= 2 ^ 52 and born < 2 ^ 53)
    while true do
      check(used <= 2 ^ 52 and permit > 0 and refill > 0 and refill / permit > speed and #parts < max_parts)
      local part = {used = used, permit = permit, refill = refill, burst = burst, own = lasting, kept = 0, gaps = {}}
      parts[#parts + 1] = part
      if #state > 44 then from = read_gaps(part, state, charged, from) end
      check(from)
      if from > #state then return last, charged, born, parts end
      speed = refill / permit
      used, permit, refill, burst, from = struct.unpack('<I7I6I5I5', state, from)
    end
  end

  -- Returns the number of ticks until no part is in use.
  function bucket.ticks(parts)
    local ticks = 0
    for _, part in ipairs(parts) do ticks = math.max(ticks, math.ceil(part.used / part.refill)) end
    return ticks
  end

  -- Refills the parts for a number of ticks. A part that is not in use has no gaps.
  function bucket.refill(parts, ticks)
    for _, part in ipairs(parts) do
      part.used = math.max(0, part.used - ticks * part.refill)
      if part.used == 0 then part.gaps, part.kept = {}, 0 end
    end
  end

  -- Returns the index of the part with this rate, or nil.
  function bucket.find(parts, permit, refill)
    for i, part in ipairs(parts) do
      if part.permit == permit and part.refill == refill then return i end
    end
  end

  -- Returns what is used of a part, in units of another permit. A fraction of a permit is rounded
  -- up.
  local function rescale(part, permit, refill)
    local units = part.used
    if part.permit ~= permit then
      local whole = math.floor(units / part.permit)
      units = whole * permit + math.min(permit, math.ceil((units - whole * part.permit) * permit / part.permit))
    end
    return math.min(units, longest * refill, 2 ^ 52)
  end

  -- Returns a part for this rate that is a copy of the fullest part. slower is the number of slower
  -- parts. If the copy may lack some of what the slower parts use, nothing can be given back to it;
  -- otherwise a refund could leave less than the slower calls use.
  local function copy_fullest(parts, permit, refill, slower, charged)
    local copy = {used = 0, permit = permit, refill = refill, own = 0, kept = 0, gaps = {}}
    local from, used = nil, false
    for i, part in ipairs(parts) do
      local units = rescale(part, permit, refill)
      if units > copy.used then copy.used, copy.kept, copy.gaps, from = units, part.kept, {unpack(part.gaps)}, i end
      used = used or (i <= slower and part.used > 0)
    end
    if used and from ~= slower then copy.kept, copy.gaps = charged, {0, charged} end
    return copy
  end

  -- Makes the part permanent. Nothing that was charged before can be given back to it.
  local function close(part, charged)
    part.own, part.kept, part.gaps = lasting, charged, {0, charged}
  end

  -- Inserts a part by its rate and returns its index. If there are too many parts, removes the
  -- fastest of the others. The next slower part then has at least the removed part's use, so that
  -- never more is admitted than with both.
  function bucket.add_part(parts, permit, refill, charged)
    local at = 1
    while parts[at] and parts[at].refill / parts[at].permit < refill / permit do at = at + 1 end
    table.insert(parts, at, copy_fullest(parts, permit, refill, at - 1, charged))
    if #parts <= max_parts then return at end
    local last = at == #parts and #parts - 1 or #parts
    local slower = parts[last - 1]
    slower.used = math.max(slower.used, rescale(parts[last], slower.permit, slower.refill))
    close(slower, charged)
    close(parts[at], charged)
    table.remove(parts, last)
    return math.min(at, #parts)
  end

  -- Returns how many units of a part may be in use after a call whose bucket holds full permits.
  local function bound(part, full)
    return math.min(math.max(full, part.burst) * part.permit, longest * part.refill, 2 ^ 52)
  end

  -- Returns after how many ticks a cost fits into a part and all faster ones, if the bucket holds
  -- full permits. A cost above the bound of a part fits when the bucket is fresh, after whole
  -- ticks. If the rate of the first part is new to the bucket, the cost may fit earlier than that.
  function bucket.wait(parts, at, cost, full, whole)
    local ticks = 0
    for i = at, #parts do
      local part = parts[i]
      local missing = part.used + cost * part.permit - bound(part, full)
      if missing > part.used then return whole end
      ticks = math.max(ticks, math.ceil(missing / part.refill))
    end
    return ticks
  end

  -- Returns how many permits are left in a part and all faster ones.
  function bucket.left(parts, at, full)
    local left = math.huge
    for i = at, #parts do
      left = math.min(left, math.floor((bound(parts[i], full) - parts[i].used) / parts[i].permit))
    end
    return left
  end

  -- Drops the oldest gaps if all their positions have come back. Then, while there are too many,
  -- merges the two oldest.
  local function trim(part, charged)
    local gaps, held, stale = part.gaps, charged + part.kept, 0 -- held: how many positions no gap has
    for i = 1, #gaps, 2 do held = held - gaps[i + 1] + gaps[i] end
    while stale < #gaps and (held - gaps[stale + 1] - part.kept) * part.permit >= part.used do
      held, part.kept, stale = held - part.kept + gaps[stale + 2] - gaps[stale + 1], 0, stale + 2
    end
    if stale > 0 then part.gaps = {unpack(gaps, stale + 1)} end
    gaps = part.gaps
    while #gaps > 2 * max_gaps do
      part.kept = part.kept + gaps[3] - gaps[2]
      table.remove(gaps, 3)
      table.remove(gaps, 2)
    end
  end

  -- Adds a gap and joins it with the gaps that it touches, except a gap whose positions are not
  -- known.
  function bucket.add_gap(part, charged, after, upto)
    local gaps, at, first = part.gaps, #part.gaps, part.kept > 0 and 2 or 0
    if part.kept > 0 and upto <= gaps[1] then -- the oldest gap must stay the oldest
      part.kept, gaps[1] = part.kept + gaps[1] - upto, after
      return trim(part, charged)
    end
    while at > first and gaps[at - 1] > upto do at = at - 2 end
    while at > first and gaps[at] >= after do
      after, upto = math.min(after, gaps[at - 1]), math.max(upto, gaps[at])
      table.remove(gaps, at)
      table.remove(gaps, at - 1)
      at = at - 2
    end
    table.insert(gaps, at + 1, after)
    table.insert(gaps, at + 2, upto)
    trim(part, charged)
  end

  -- Charges a cost to the part at this index and to all faster ones. renew says that the positions
  -- restart.
  function bucket.charge(parts, at, cost, charged, renew)
    for i, part in ipairs(parts) do
      if renew then part.gaps, part.kept = {}, 0 end
      if i >= at then
        part.used = part.used + cost * part.permit
      elseif part.used > 0 then
        bucket.add_gap(part, charged + cost, charged, charged + cost)
      end
    end
    parts[at].own = math.min(lasting, parts[at].own + cost)
  end

  function bucket.write(last, charged, born, parts)
    local state = {}
    for i, part in ipairs(parts) do
      local count = #part.gaps / 2
      if i == 1 then
        state[1] = struct.pack('<I7I7I6I5I5I7I7', last, part.used, part.permit, part.refill, part.burst, charged, born)
        if count == 0 and #parts == 1 then return state[1] end
      else
        state[#state + 1] = struct.pack('<I7I6I5I5', part.used, part.permit, part.refill, part.burst)
      end
      state[#state + 1] = struct.pack('<I7I7I2' .. string.rep('I7I7', count), part.own, part.kept, count, unpack(part.gaps))
    end
    return table.concat(state)
  end

  return bucket
end
