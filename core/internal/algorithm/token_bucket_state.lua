-- The state of a TokenBucket, for the scripts that read more of it than its first part.
--
-- A bucket has a part for each rate, which holds what is used at that rate. A part begins as a copy
-- of the fullest part when its rate is first used. From then on, calls are charged to the part of
-- their own rate and to those of faster rates. So the calls of a fast limit do not weaken a slow
-- one, and the fastest limit bounds all calls.
--
-- Positions number the charged permits of all rates in order. In each part the oldest permits come
-- back first. So the used permits of a part have the last positions, except for its gaps: permits
-- that were given back, or were charged under a faster rate.
--
-- state     a string, little-endian: I7 last tick; for the part of the slowest rate I7 units used,
--           I7 units per permit, I7 units refilled per tick; I7 position of the last charge; I7
--           birth (microseconds); I1 number of that part's gaps, and for each I7 and I7: the
--           positions after the first number, up to the second. Then the other parts, slower ones
--           first, each I7 units used, I7 units per permit, I7 units refilled per tick, I1 number
--           of gaps, and the gaps
-- keeps     units used and positions are at most 2^52, so every sum here is exact in a double. The
--           positions begin with the time of the birth (modulo 2^51). So if the clock steps back,
--           the charges of a counter that was reset or forgotten are not taken for those of its
--           successor. There are at most 4 parts, each with at most 64 gaps
--
-- The functions are made only when they are needed: for most buckets token_bucket.lua needs none.
local function bucket_states()
  local bucket = {max_parts = 4, max_gaps = 64}

  -- Returns the last tick, the position of the last charge, the birth, and the parts.
  function bucket.read(key, state)
    local last, used, permit, refill, charged, born, count, from = struct.unpack('<I7I7I7I7I7I7I1', state)
    local parts, speed, sound = {}, 0, last < 2 ^ 53 and charged <= 2 ^ 52 and born < 2 ^ 53
    while sound do
      sound = used <= 2 ^ 52 and permit > 0 and permit <= 2 ^ 52 and refill > 0 and refill <= 2 ^ 52
        and refill / permit > speed and count <= bucket.max_gaps and #parts < bucket.max_parts
      if not sound then break end
      local gaps, before = {}, 0
      for i = 1, count do
        local after, upto
        after, upto, from = struct.unpack('<I7I7', state, from)
        sound = sound and after >= before and upto > after and upto <= charged
        gaps[i], before = {after, upto}, upto
      end
      parts[#parts + 1] = {used = used, permit = permit, refill = refill, gaps = gaps}
      if from > #state then break end
      speed = refill / permit
      used, permit, refill, count, from = struct.unpack('<I7I7I7I1', state, from)
    end
    if not sound then error('NOTACOUNTER ' .. key) end
    return last, charged, born, parts
  end

  -- Refills the parts for so many ticks, and reports whether anything is still used. A part of
  -- which nothing is used has no gaps.
  function bucket.refill(parts, ticks)
    local used = false
    for _, part in ipairs(parts) do
      part.used = math.max(0, part.used - ticks * part.refill)
      if part.used > 0 then used = true else part.gaps = {} end
    end
    return used
  end

  -- Returns the number of ticks until nothing of any part is used.
  function bucket.ticks(parts)
    local ticks = 0
    for _, part in ipairs(parts) do ticks = math.max(ticks, math.ceil(part.used / part.refill)) end
    return ticks
  end

  -- Returns the place of the part with this rate, or nil.
  function bucket.find(parts, permit, refill)
    for i, part in ipairs(parts) do
      if part.permit == permit and part.refill == refill then return i end
    end
  end

  -- Returns what is used of the fullest part, in units of another permit, and its gaps.
  function bucket.fullest(parts, permit, most)
    local used, gaps = 0, {}
    for _, part in ipairs(parts) do
      local units = bucket.rescale(part, permit, most)
      if units > used then used, gaps = units, part.gaps end
    end
    return used, gaps
  end

  -- Adds a gap, and drops gaps whose positions have all come back. If there are more than max_gaps,
  -- the two oldest become one that reaches back to the beginning: what was charged there can no
  -- longer be given back.
  function bucket.add_gap(part, charged, after, upto)
    local gaps, held = {}, charged -- from the newest to the oldest
    local function add(gap)
      local newer = gaps[#gaps]
      if newer and gap[2] >= newer[1] then
        held = held + newer[2] - newer[1]
        gap = {math.min(gap[1], newer[1]), math.max(gap[2], newer[2])}
        gaps[#gaps] = nil
      end
      if (held - gap[2]) * part.permit >= part.used then return false end
      gaps[#gaps + 1], held = gap, held - (gap[2] - gap[1])
      return true
    end
    local added = false
    for i = #part.gaps, 0, -1 do
      local gap = part.gaps[i]
      if not added and (not gap or gap[2] <= upto) then
        added = true
        if not add({after, upto}) then break end
      end
      if gap and not add(gap) then break end
    end
    if #gaps > bucket.max_gaps then
      gaps[#gaps - 1] = {0, gaps[#gaps - 1][2]}
      gaps[#gaps] = nil
    end
    part.gaps = {}
    for i = #gaps, 1, -1 do part.gaps[#part.gaps + 1] = gaps[i] end
  end

  -- Returns what is used of a part, in units of another permit. A fraction of a permit is rounded
  -- up.
  function bucket.rescale(part, permit, most)
    local units = part.used
    if part.permit ~= permit then
      local whole = math.floor(units / part.permit)
      units = whole * permit + math.min(permit, math.ceil((units - whole * part.permit) * permit / part.permit))
    end
    return math.min(units, most, 2 ^ 52)
  end

  -- Adds a part in the order of rates, and returns its place. If there are too many, the fastest of
  -- the others is removed. The next slower part then has at least its use, so that neither limit
  -- admits more than it would alone.
  function bucket.add_part(parts, part, charged, most)
    local at = 1
    while parts[at] and parts[at].refill / parts[at].permit < part.refill / part.permit do at = at + 1 end
    table.insert(parts, at, part)
    if #parts > bucket.max_parts then
      local last = at == #parts and #parts - 1 or #parts
      local slower = parts[last - 1]
      local used = bucket.rescale(parts[last], slower.permit, most * slower.refill)
      if used > slower.used then slower.used, slower.gaps = used, {{0, charged}} end
      table.remove(parts, last)
      if at > last then at = last end
    end
    return at
  end

  function bucket.write(last, charged, born, parts)
    local state = {}
    for i, part in ipairs(parts) do
      if i == 1 then
        state[1] = struct.pack('<I7I7I7I7I7I7I1', last, part.used, part.permit, part.refill, charged, born, #part.gaps)
      else
        state[#state + 1] = struct.pack('<I7I7I7I1', part.used, part.permit, part.refill, #part.gaps)
      end
      for _, gap in ipairs(part.gaps) do state[#state + 1] = struct.pack('<I7I7', gap[1], gap[2]) end
    end
    return table.concat(state)
  end

  return bucket
end
