-- Pause: no call goes out to a server until a time is over, because the server asked for that.
--
-- args      none
-- state     see pause_state.lua
algorithms.ps1 = function(key, now)
  local p = read_pause(key, now)
  return {
    no_permits = true, retry = math.max(0, p.ends - now), left = 0, reset = math.max(0, p.forgotten - now),
    anchored = p.moved and pack_pause(p, now) or nil,
  }
end
