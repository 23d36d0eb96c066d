-- Reads a lock. Changes nothing.
-- KEYS[1]  lock: hash of owner -> hold count, and `mode` for a read-write lock
-- Returns  {PTTL, {field, value, ...}}; PTTL is -2 when the lock is free, and -1 without expiry
-- Retry    safe

return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1])}
