-- Restarts of the server, of which its uptime tells.

-- restarting: for how many milliseconds the node is not counted after its start, and the error if that is not known.
local function restarting(delay)
  local info = redis.pcall('INFO', 'server')
  if type(info) == 'table' then
    return nil, {err = 'NOINFO ' .. info.err}
  end
  local uptime = string.match(info, 'uptime_in_seconds:(%-?%d+)')
  if not uptime then
    return nil, {err = 'NOINFO INFO server does not say uptime_in_seconds'}
  end
  -- The uptime is the difference of two times in whole seconds: up to a second more than the truth. A clock that was set
  -- back may make it negative.
  return delay + 1000 - math.max(tonumber(uptime), 0) * 1000
end
