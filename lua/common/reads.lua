-- Each read hold is its own key, named after its owner and number. The TTL of the key is the lease.
-- The hash of the lock has the number of each owner's holds, and lasts as long as the longest hold.
-- Needs attempt, bounds, take

-- count_of returns the number of an owner's read holds; or nil and an error if the hash has a text
-- that no lock has.
local function count_of(lock, owner)
  local text = redis.call('HGET', lock, owner)
  local count = tonumber(text or 0)
  if count and count >= 0 and count <= max_entries then return count end
  return nil, {err = 'NOTLOCK a hold count is ' .. string.sub(text, 1, max_text)}
end

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

-- each_reader calls visit(owner, key of its holds without the number, count) for each reader. It
-- returns false if it has not visited all, because there are too many readers or holds.
local function each_reader(lock, prefix, visit)
  local fields = redis.call('HRANDFIELD', lock, max_entries, 'WITHVALUES')
  local all, visited = #fields < 2 * max_entries, 0
  for i = 1, #fields, 2 do
    local owner, count = fields[i], tonumber(fields[i + 1])
    if owner ~= 'mode' and count and string.sub(owner, -6) ~= ':write' then
      if count >= 0 and visited + count <= max_entries then
        visited = visited + count
        visit(owner, prefix .. owner .. ':rwlock_timeout', count)
      else
        all = false
      end
    end
  end
  return all
end

-- is_ours reports whether an owner is of holdfast, because its number has 19 digits, see
-- internal/owner. Owners of Redisson have the ids of threads.
local function is_ours(owner) return string.find(string.sub(owner, -20), '^:%d+$') ~= nil end

-- longest_read returns how long the longest read hold of the lock lasts, as PTTL does; -1 if that
-- is not known. It removes owners of holdfast whose holds have all expired. These owners died, and
-- the holds of others kept the hash alive. A reader of Redisson whose holds have expired may be
-- alive, because releases 3.44 to 3.52 renew the hash, but not all holds. So such a reader counts
-- as long as the hash lasts.
local function longest_read(lock, prefix)
  local longest = -2
  local all = each_reader(lock, prefix, function(owner, holds, count)
    local left = remaining(holds, count)
    if left == -2 and not is_ours(owner) then left = redis.call('PTTL', lock) end
    if left == -2 then
      redis.call('HDEL', lock, owner)
    elseif left == -1 or longest == -1 then
      longest = -1
    else
      longest = math.max(longest, left)
    end
  end)
  return all and longest or -1
end

-- last_until makes the hash last as long as its longest read hold.
local function last_until(lock, longest)
  if longest >= 0 then redis.call('PEXPIRE', lock, math.max(longest, 1)) end
end

-- extend_read makes a read hold last for at least the lease. It returns nil, or the server's error.
local function extend_read(holds, number, lease)
  local hold = holds .. ':' .. number
  local left, _, refusal = redis.call('PTTL', hold), nil, nil
  if left ~= -1 and left < tonumber(lease) then
    _, refusal = attempt('SET', hold, '1', 'PX', lease)
  end
  return refusal
end

-- take_read gives an owner the read hold with that number, beside other fields, and makes the lock
-- last for at least its lease. It returns nil, or the server's error, and then nothing has changed.
local function take_read(lock, holds, owner, number, lease, ...)
  local left, count = redis.call('PTTL', lock), redis.call('HGET', lock, owner)
  local had, lasts = tonumber(count or 0), tonumber(lease) -- had is what count_of returns
  if had > tonumber(number) then
    -- Drop the holds above the number, because this command is late, or the release of these holds
    -- ran out of memory, or the owner lost them. As in a release, the longest lease stays until the
    -- owner releases its last hold.
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
