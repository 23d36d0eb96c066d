-- Grants: fields are written into the hash that is the lock's own key.

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
