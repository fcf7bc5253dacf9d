-- Raises the error of a command, unless it says that the key holds another type.
local function allow_other_type(err)
  if not string.find(err, '^WRONGTYPE') then error(err) end
end
