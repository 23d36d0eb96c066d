-- Reads a fenced lock and the last token given. Changes nothing.
--
-- KEYS[1]  lock: hash of owner -> hold count
-- KEYS[2]  token: the number of the last acquisition
--
-- Returns  {PTTL, {field, value, ...}, token}; PTTL is -2 when the lock is free and -1 when it has no expiry; the token is
--          '' when none was given yet
-- Retry    safe

return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1]), redis.call('GET', KEYS[2]) or ''}
