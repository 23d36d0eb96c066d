-- Reads a fair lock and its queue. Changes nothing.
-- KEYS[1]  lock: hash of owner -> hold count
-- KEYS[2]  queue: list of owners, head first
-- Returns  {PTTL, {field, value, ...}, {owner, ...}} as inspect.lua, with the first 10000 owners
-- Retry    safe

-- Needs bounds, fields
local queue, fields = redis.call('LRANGE', KEYS[2], 0, max_entries - 1), fields_of(KEYS[1])
return fields.err and fields or {redis.call('PTTL', KEYS[1]), fields, shorten(queue)}
