local redis = (function(name, says, flagged)
  local real, declared, said = redis, {}, false
  for _, key in ipairs(KEYS) do declared[key] = true end

  -- Which arguments are keys: the first ones up to this number.
  local all = 1 / 0
  local keys = {
    DEL = all, EXISTS = all, GET = 1, HDEL = 1, HEXISTS = 1, HGET = 1, HLEN = 1,
    HRANDFIELD = 1, HSET = 1, INCR = 1, INFO = 0, LASTSAVE = 0, LINDEX = 1, LLEN = 1, LPOP = 1,
    LRANGE = 1, LREM = 1, PEXPIRE = 1, PTTL = 1, PUBLISH = 0, PUBSUB = 0, RPUSH = 1, SET = 1,
    SPUBLISH = 0, TIME = 0, ZADD = 1, ZCARD = 1, ZPOPMIN = 1, ZRANGE = 1, ZREM = 1, ZSCORE = 1,
  }

  -- wrong returns what is wrong with a command, or nil.
  local function wrong(command, ...)
    local last = keys[string.upper(command)]
    if not last and flagged then return nil end
    if not last then return 'luashim does not know where the keys of ' .. command .. ' are' end
    for i = 1, math.min(last, select('#', ...)) do
      local key = (select(i, ...))
      if not declared[tostring(key)] then
        local complaint = says .. ': ' .. command .. ' ' .. tostring(key)
        if not said then real.log(real.LOG_WARNING, name .. ' ' .. complaint) end
        said = true
        return not flagged and complaint or nil
      end
    end
  end

  local function raise(text)
    -- Redis 7 replies with the err of a table; older ones cannot raise tables.
    if real.REDIS_VERSION then error({err = text}) end
    error(text, 0)
  end

  return setmetatable({
    call = function(...)
      local complaint = wrong(...)
      if complaint then raise('ERR ' .. complaint) end
      return real.call(...)
    end,
    pcall = function(...)
      local complaint = wrong(...)
      if complaint then return {err = 'ERR ' .. complaint} end
      return real.pcall(...)
    end,
  }, {__index = real})
end)()
