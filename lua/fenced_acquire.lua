-- Acquires a fenced lock for an owner and returns the fence, or returns the holder.
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  fence: the number of the last acquisition; it has no TTL
-- KEYS[3]  waiters; left out as in acquire.lua
-- ARGV[1]  owner
-- ARGV[2]  lease in milliseconds
-- ARGV[3]  the owner's registration, with waiters only
-- Returns  the fence if the owner holds the lock now, else as acquire.lua
-- Retry    safe, as acquire.lua: a holder keeps its fence, and each number is used once

local token, left = false, redis.call('PTTL', KEYS[1])
if left ~= -2 then
  local holders = redis.call('HRANDFIELD', KEYS[1], '10') -- as in acquire.lua
  if holders[1] ~= ARGV[1]
    and (not holders[2] or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0) then
    -- Needs refused, waiters
    local refusal = refused(KEYS[1], left, -1, holders)
    refusal[4] = KEYS[3] and register(KEYS[3], ARGV[3])
    return refusal
  end
  -- No other owner gets a number while this owner holds the lock.
  token = redis.call('GET', KEYS[2])
end
if not token then
  -- INCR comes before take, because an unused number does no harm, but a lock without a number
  -- would.
  redis.call('INCR', KEYS[2])
  -- GET returns the number as a string, because Lua's own numbers are exact only up to 2^53.
  token = redis.call('GET', KEYS[2])
end
-- Needs attempt, take
local refusal = take(KEYS[1], left, ARGV[2], ARGV[1], 1)
if KEYS[3] and not refusal then
  attempt('ZREM', KEYS[3], ARGV[3]) -- an error would hide that the owner has the lock
end
return refusal or string.sub(token, 1, 64) -- longer than any number
