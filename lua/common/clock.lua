-- The clock of the server, for all who compare times in Redis.

-- now: milliseconds since the epoch.
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- whole: a number of milliseconds as the wire writes it. Lua's own way of writing large numbers has an exponent.
local function whole(milliseconds)
  return string.format('%.0f', milliseconds)
end
