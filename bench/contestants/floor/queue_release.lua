-- Gives the lock to the head of its queue, and tells its client so; without a queue the lock is
-- free.
-- KEYS: lock, queue. ARGV: owner, lease in ms. An owner is '<client>:<number>'.
-- Returns whether the lock was the owner's.
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('del', KEYS[1])
local successor = redis.call('lpop', KEYS[2])
if successor then
  redis.call('hset', KEYS[1], successor, 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  local client, number = string.match(successor, '^(.*):(%d+)$')
  redis.call('publish', client, number)
end
return 1
