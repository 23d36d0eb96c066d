-- Needs attempt
-- take writes fields into the hash of a lock, whose PTTL is left, and makes it last for at least
-- the lease. It returns nil, or the server's error, and then nothing has changed.
local function take(lock, left, lease, ...)
  -- This is the first write, because a server that is out of memory rejects only the first write.
  redis.call('HSET', lock, ...)
  if left < tonumber(lease) then
    local _, refusal = attempt('PEXPIRE', lock, lease)
    if refusal and left == -2 then
      redis.call('DEL', lock) -- an ACL that forbids PEXPIRE must not leave a lock without expiry
    end
    return refusal
  end
end
