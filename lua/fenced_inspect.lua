-- Reads a fenced lock and its latest fence. Changes nothing.
-- KEYS[1]  lock: hash of owner -> hold count
-- KEYS[2]  fence: the number of the last acquisition
-- Returns  {PTTL, {field, value, ...}, fence} as inspect.lua; fence is '0' before the first
-- Retry    safe

-- Needs fields
local token, fields = redis.call('GET', KEYS[2]), fields_of(KEYS[1])
return fields.err and fields or {redis.call('PTTL', KEYS[1]), fields,
  string.sub(token or '0', 1, 64)}
