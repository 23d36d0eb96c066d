-- now returns the server's clock: milliseconds since the epoch.
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- whole formats a large number for Redis, because Lua's own format has an exponent.
local function whole(number)
  return string.format('%.0f', number)
end
