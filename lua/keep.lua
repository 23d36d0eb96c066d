-- Ends all holds of an owner, but keeps the lock taken for some more time, in another owner's name.
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  queue of a fair lock, whose head alone is notified; left out for other locks
-- ARGV[1]  owner
-- ARGV[2]  owner that keeps the lock, which nobody releases; the same in every run
-- ARGV[3]  milliseconds to keep the lock
-- ARGV[4]  channel of the lock
-- ARGV[5]  message that makes waiters ask again, and learn the new TTL
-- ARGV[6]  PUBLISH, SPUBLISH or BOTH, see common/classic.lua
-- Returns  {status, refusal} as release.lua: status -1 = the owner did not hold the lock, 1 = kept
-- Retry    safe: a second run finds the lock kept, and never makes it last longer

-- Needs attempt, announce
local lock, left = KEYS[1], tonumber(ARGV[3])
-- No lock has an empty field, so this removes nothing. A replica, and a server that does not let
-- the user remove the owner, end the script here. A server that is out of memory only rejects HSET
-- as the first write.
redis.call('HDEL', lock, '')
if redis.call('HEXISTS', lock, ARGV[2]) == 1 then
  if redis.call('PTTL', lock) > left then redis.call('PEXPIRE', lock, ARGV[3]) end
elseif redis.call('HEXISTS', lock, ARGV[1]) == 1 then
  redis.call('HSET', lock, ARGV[2], '1') -- before HDEL: an empty hash would lose its TTL
  local _, refusal = attempt('PEXPIRE', lock, ARGV[3])
  if refusal then
    redis.call('HDEL', lock, ARGV[2])
    return refusal
  end
  redis.call('HDEL', lock, ARGV[1])
else
  return {-1, ''}
end
local channel = ARGV[4]
if KEYS[2] then
  local head = attempt('LINDEX', KEYS[2], 0)
  if not head then return {1, ''} end
  channel = channel .. ':' .. head
end
return {1, (announce(ARGV[6], channel, ARGV[5]))}
