-- Takes a fenced lock for one owner and numbers the acquisition, or says who is in the way and for how long.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  token: the number of the last acquisition; it has no TTL
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute)
-- ARGV[3]  lease in milliseconds
--
-- Uses     hold
-- Returns  the token when the owner holds the lock now, else {PTTL of the lock, its holder, -1}; a PTTL of -1 means "held, no expiry"
-- Retry    safe: an owner that holds the lock already keeps it and its token; a number that is lost is never given again

local token = false
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  -- Nobody else has taken a number while this owner holds the lock.
  token = redis.call('GET', KEYS[2])
elseif redis.call('PTTL', KEYS[1]) ~= -2 then
  return refused(KEYS[1], -1)
end
if not token then
  -- Before the lock is granted: a number too many does no harm, a grant without a number would.
  redis.call('INCR', KEYS[2])
  -- As a text, because Lua's own numbers are exact only up to 2^53.
  token = redis.call('GET', KEYS[2])
end
return grant(KEYS[1], ARGV[3], ARGV[1], ARGV[2]) or token
