-- Takes a fenced lock for one owner and numbers the acquisition, or says who is in the way and for how long.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  token: the number of the last acquisition; it has no TTL
-- KEYS[3]  waiters; left out: the owner does not wait, or nobody would hear that it got the lock
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute)
-- ARGV[3]  lease in milliseconds
-- ARGV[4]  the owner's place among the waiters
--
-- Returns  the token when the owner holds the lock now, else {PTTL of the lock, its holder, -1}, and behind that the ticket
--          of a waiter; a PTTL of -1 means "held, no expiry"
-- Retry    safe: an owner that holds the lock already keeps it and its token; a number that is lost is never given again. A
--          waiter keeps its place

local token, left = false, redis.call('PTTL', KEYS[1])
if left ~= -2 then
  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    -- Uses refused, attempt, waiters
    return {left, holder(KEYS[1]), -1, KEYS[3] and enlist(KEYS[3], ARGV[4])}
  end
  -- Nobody else has taken a number while this owner holds the lock.
  token = redis.call('GET', KEYS[2])
end
if not token then
  -- Before the lock is granted: a number too many does no harm, a grant without a number would.
  redis.call('INCR', KEYS[2])
  -- As a text, because Lua's own numbers are exact only up to 2^53.
  token = redis.call('GET', KEYS[2])
end
-- Uses grant
local refusal = grant(KEYS[1], left, ARGV[3], ARGV[1], ARGV[2])
if KEYS[3] and not refusal then
  redis.pcall('ZREM', KEYS[3], ARGV[4]) -- the owner has the lock: an error would say that it has not
end
return refusal or token
