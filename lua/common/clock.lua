-- now returns the server's clock: milliseconds since the epoch.
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- whole writes a large number as the wire does. Lua's own way has an exponent.
local function whole(number)
  return string.format('%.0f', number)
end
