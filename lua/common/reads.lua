-- Each read hold is a key of its own, named after its owner and number, whose TTL is its lease. The
-- hash of the lock has the number of each owner's holds, and lasts as long as the longest of all.
-- Needs attempt, take

-- remaining returns how long the longest of an owner's read holds lasts, as PTTL does.
local function remaining(holds, count)
  local longest = -2
  for i = 1, count do
    local left = redis.call('PTTL', holds .. ':' .. i)
    if left == -1 then return -1 end
    longest = math.max(longest, left)
  end
  return longest
end

-- each_reader calls visit(owner, key of its holds without the number, count) for each reader.
local function each_reader(lock, prefix, visit)
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local owner, count = fields[i], tonumber(fields[i + 1])
    if owner ~= 'mode' and count and string.sub(owner, -6) ~= ':write' then
      visit(owner, prefix .. owner .. ':rwlock_timeout', count)
    end
  end
end

-- longest_read returns how long the longest read hold of the lock lasts, as PTTL does. It removes
-- owners whose holds have all expired: they died, and the holds of others kept the hash alive.
local function longest_read(lock, prefix)
  local longest = -2
  each_reader(lock, prefix, function(owner, holds, count)
    local left = remaining(holds, count)
    if left == -2 then
      redis.call('HDEL', lock, owner)
    elseif left == -1 or longest == -1 then
      longest = -1
    else
      longest = math.max(longest, left)
    end
  end)
  return longest
end

-- last_until makes the hash last as long as its longest read hold.
local function last_until(lock, longest)
  if longest >= 0 then redis.call('PEXPIRE', lock, math.max(longest, 1)) end
end

-- extend_read makes one read hold last for the lease at least. It returns nil, or the refusal.
local function extend_read(holds, number, lease)
  local hold = holds .. ':' .. number
  local left, _, refusal = redis.call('PTTL', hold), nil, nil
  if left ~= -1 and left < tonumber(lease) then
    _, refusal = attempt('SET', hold, '1', 'PX', lease)
  end
  return refusal
end

-- take_read gives an owner the read hold with that number, besides other fields, and makes the lock
-- last for its lease at least. It returns nil, or the refusal; then nothing has changed.
local function take_read(lock, holds, owner, number, lease, ...)
  local left, count = redis.call('PTTL', lock), redis.call('HGET', lock, owner)
  local had, lasts = tonumber(count or 0), tonumber(lease)
  if had > tonumber(number) then
    -- Drop the holds above: this command is late, or their release ran out of memory, or they were
    -- lost. As in a release, the longest lease stays until the last hold is given back.
    lasts = math.max(lasts, remaining(holds, had))
  end
  local refusal = take(lock, left, lease, owner, number, ...) or extend_read(holds, number, lasts)
  if not refusal then
    for i = number + 1, had do redis.call('DEL', holds .. ':' .. i) end
    return nil
  end
  if left == -2 then
    redis.call('DEL', lock)
  elseif count then
    redis.call('HSET', lock, owner, count)
  else
    redis.call('HDEL', lock, owner)
  end
  if left > 0 then attempt('PEXPIRE', lock, left) end
  return refusal
end
