-- Holds: fields in the hash of a lock, which is the lock's own key.

-- holder: an owner that has the lock; of several, one of them.
local function holder(lock)
  for _, field in ipairs(redis.call('HKEYS', lock)) do
    if field ~= 'mode' then
      return field
    end
  end
  return ''
end

-- refused: the answer to an attempt that somebody's hold is in the way of. It is to look again after nap milliseconds at
-- the latest, or with nap = -1 when the lease should be over.
local function refused(lock, nap)
  return {redis.call('PTTL', lock), holder(lock), nap}
end

-- grant: writes fields into the hash of a lock, whose PTTL is left, and makes it last for the lease at least. It returns
-- nil, or the refusal of the server; then nothing has changed.
local function grant(lock, left, lease, ...)
  -- A server that is out of memory refuses the first write of a script and no later one, whatever that adds: so this is
  -- the first.
  redis.call('HSET', lock, ...)
  if left < tonumber(lease) then
    local expiring = redis.pcall('PEXPIRE', lock, lease)
    if type(expiring) == 'table' and expiring.err then
      -- An ACL that forbids PEXPIRE must not leave a lock without expiry.
      if left == -2 then
        redis.call('DEL', lock)
      end
      return expiring
    end
  end
  return nil
end

-- lower: notes that count levels are left. It returns nil, or the server's refusal.
local function lower(lock, field, count)
  -- A server that is out of memory refuses HSET. The count in Redis is for the eyes of others, ours is
  -- authoritative, and the last release drops the field whatever it says: so a level can be left all the same.
  local written = redis.pcall('HSET', lock, field, count)
  if type(written) == 'table' and written.err and not string.find(written.err, 'OOM', 1, true) then
    return written
  end
  return nil
end
