-- Releases the lock if it is the owner's, and announces that.
-- KEYS: lock, channel. ARGV: owner. Returns whether it was.
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1
