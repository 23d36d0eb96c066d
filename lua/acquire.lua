-- Takes a reentrant lock for one owner, or says who is in the way and for how long.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute)
-- ARGV[3]  lease in milliseconds
--
-- Returns  nil when the owner holds the lock now, else {PTTL of the lock, its holder}; a PTTL of -1 means "held, no expiry"
-- Retry    safe: the count is absolute and an owner that holds the lock already keeps it; the TTL is never shortened

local left = redis.call('PTTL', KEYS[1])
if left ~= -2 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return {left, redis.call('HKEYS', KEYS[1])[1]}
end

-- HSET is the first write: a server that is out of memory refuses no later one, whatever it adds.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if left < tonumber(ARGV[3]) then
  local expiring = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
  if type(expiring) == 'table' and expiring.err then
    -- An ACL that forbids PEXPIRE must not leave a lock without expiry.
    if left == -2 then
      redis.call('HDEL', KEYS[1], ARGV[1])
    end
    return expiring
  end
end
return nil
