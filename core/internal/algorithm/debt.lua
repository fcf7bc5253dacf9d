-- Returns how many more permits than max may be in use because costs were charged that did not fit.
-- share is a multiple of max. The number of a sub-window must fit in five bytes.
local function debt_of(max, share) return math.min(math.floor(max * share), 2 ^ 40 - 1 - max) end
