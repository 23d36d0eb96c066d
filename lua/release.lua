-- Gives back one level of a lock, or the whole of it.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute); 0 drops the owner whatever its count
-- ARGV[3]  channel of the lock
-- ARGV[4]  unlock message
-- ARGV[5]  PUBLISH or SPUBLISH
--
-- Uses     hold, announce
-- Returns  {status, refusal}: status -1 = not the owner's, 0 = levels are left, 1 = released;
--          refusal is the server's error text when it let the release through but not the message, else ''
-- Retry    safe: a second run answers -1 or leaves the same count behind

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return {-1, ''}
end
if tonumber(ARGV[2]) > 0 then
  return lower(KEYS[1], ARGV[1], ARGV[2]) or {0, ''}
end
redis.call('HDEL', KEYS[1], ARGV[1])
local _, refusal = announce(ARGV[5], ARGV[3], ARGV[4])
return {1, refusal}
