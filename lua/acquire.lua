-- Takes a reentrant lock for one owner, or says who is in the way and for how long.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute)
-- ARGV[3]  lease in milliseconds
--
-- Uses     hold
-- Returns  nil when the owner holds the lock now, else {PTTL of the lock, its holder, -1}; a PTTL of -1 means "held, no expiry"
-- Retry    safe: the count is absolute and an owner that holds the lock already keeps it; the TTL is never shortened

if redis.call('PTTL', KEYS[1]) ~= -2 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return refused(KEYS[1], -1)
end
return grant(KEYS[1], ARGV[3], ARGV[1], ARGV[2])
