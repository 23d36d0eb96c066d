-- Reads a fenced lock and the last token given. Changes nothing.
-- KEYS[1]  lock: hash of owner -> hold count
-- KEYS[2]  token: the number of the last acquisition
-- Returns  {PTTL, {field, value, ...}, token} as inspect.lua; token is '0' when none was given yet
-- Retry    safe

local token = redis.call('GET', KEYS[2])
return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1]), token or '0'}
