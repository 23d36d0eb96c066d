-- Takes the lock if it is free, else joins the end of its queue.
-- KEYS: lock, queue. ARGV: owner, lease in ms.
-- Returns -3 if taken, else what is left of the other one's lease.
if redis.call('exists', KEYS[1]) == 0 then
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return -3
end
redis.call('rpush', KEYS[2], ARGV[1])
return redis.call('pttl', KEYS[1])
