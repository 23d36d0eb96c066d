-- Takes a reentrant lock for one owner, or says who is in the way and for how long.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  waiters; left out: the owner does not wait, or nobody would hear that it got the lock
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute)
-- ARGV[3]  lease in milliseconds
-- ARGV[4]  the owner's place among the waiters
--
-- Returns  nil when the owner holds the lock now, else {PTTL of the lock, its holder, -1}, and behind that the ticket of a
--          waiter; a PTTL of -1 means "held, no expiry"
-- Retry    safe: the count is absolute and an owner that holds the lock already keeps it; the TTL is never shortened. A
--          waiter keeps its place

local left = redis.call('PTTL', KEYS[1])
if left ~= -2 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  -- Uses refused, attempt, waiters
  return {left, holder(KEYS[1]), -1, KEYS[2] and enlist(KEYS[2], ARGV[4])}
end
-- Uses grant
local refusal = grant(KEYS[1], left, ARGV[3], ARGV[1], ARGV[2])
if KEYS[2] and not refusal then
  redis.pcall('ZREM', KEYS[2], ARGV[4]) -- the owner has the lock: an error would say that it has not
end
return refusal
