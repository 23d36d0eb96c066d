-- Reads a fair lock and its queue. Changes nothing.
--
-- KEYS[1]  lock: hash of owner -> hold count
-- KEYS[2]  queue: list of owners, head first
--
-- Returns  {PTTL, {field, value, ...}, {owner, ...}}; PTTL is -2 when the lock is free and -1 when it has no expiry
-- Retry    safe

return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1)}
