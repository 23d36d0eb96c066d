-- Transfers a detached lock from one owner to another.
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]  owner that detached the lock
-- ARGV[2]  new owner, which gets a count of 1
-- ARGV[3]  lease in milliseconds
-- Returns  1 = the new owner holds the lock, 0 = neither owner does
-- Retry    safe: the new owner keeps the lock, and its lease never gets shorter

if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    -- Needs not_held
    return not_held(KEYS[1]) or 0
  end
  redis.call('HSET', KEYS[1], ARGV[2], '1') -- first: an empty hash would lose its TTL
  redis.call('HDEL', KEYS[1], ARGV[1])
elseif redis.call('PTTL', KEYS[1]) >= tonumber(ARGV[3]) then
  return 1 -- this command is late, and the lease may have been extended since
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
