-- Reads a fenced lock and the last token given. Changes nothing.
-- KEYS[1]  lock: hash of owner -> hold count
-- KEYS[2]  token: the number of the last acquisition
-- Returns  {PTTL, {field, value, ...}, token} as inspect.lua; token is '0' before the first
-- Retry    safe

-- Needs fields
local token, fields = redis.call('GET', KEYS[2]), fields_of(KEYS[1])
return fields.err and fields or {redis.call('PTTL', KEYS[1]), fields,
  string.sub(token or '0', 1, 64)}
