-- Adds a nested hold to a lock that the owner holds. The script never acquires a free lock, because
-- an owner that lost its lock must learn that others may have been in its critical section.
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute)
-- ARGV[3]  lease of the nested hold in milliseconds
-- Returns  1 = re-entered, 0 = the owner does not hold the lock
-- Retry    safe: the count is absolute; the TTL becomes max(what is left, lease)

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  -- Needs not_held
  return not_held(KEYS[1]) or 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
