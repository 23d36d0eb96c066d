-- Reads a fair lock and its queue. Changes nothing.
-- KEYS[1]  lock: hash of owner -> hold count
-- KEYS[2]  queue: list of owners, head first
-- Returns  {PTTL, {field, value, ...}, {owner, ...}} as inspect.lua
-- Retry    safe

local queue = redis.call('LRANGE', KEYS[2], 0, -1)
return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1]), queue}
