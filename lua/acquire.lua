-- Acquires a lock for an owner, or returns the holder and the remaining lease.
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  waiters; left out if the owner does not wait, or could not receive a grant message
-- ARGV[1]  owner
-- ARGV[2]  lease in milliseconds
-- ARGV[3]  the owner's registration, with waiters only
-- Returns  nil if the owner holds the lock now, else {PTTL of the lock, its holder, -1} and the
--          ticket of a waiter; a PTTL of -1 means "held, no expiry"
-- Retry    safe: the count is 1 afterwards, an owner that held the lock keeps it, and the TTL
--          never gets shorter

local left = redis.call('PTTL', KEYS[1])
-- HRANDFIELD says who has the lock and, unless there are several fields, whether the owner does.
local holders = left ~= -2 and redis.call('HRANDFIELD', KEYS[1], '10')
if holders and holders[1] ~= ARGV[1]
  and (not holders[2] or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0) then
  -- Needs refused, waiters
  local refusal = refused(KEYS[1], left, -1, holders)
  refusal[4] = KEYS[2] and register(KEYS[2], ARGV[3])
  return refusal
end
-- These lines do the same as take. Creating the functions of take would cost a server as much as
-- one more command.
redis.call('HSET', KEYS[1], ARGV[1], '1')
if left == -2 or left < tonumber(ARGV[2]) then
  local expiring = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if expiring ~= 1 then
    if left == -2 then redis.call('DEL', KEYS[1]) end
    return expiring
  end
end
if KEYS[2] then
  redis.pcall('ZREM', KEYS[2], ARGV[3]) -- an error would hide that the owner has the lock
end
return nil
