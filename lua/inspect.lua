-- Reads a lock. Changes nothing.
-- KEYS[1]  lock: hash of owner -> hold count, and `mode` for a read-write lock
-- Returns  {PTTL, {field, value, ...}}; PTTL is -2 if the lock is free, and -1 without expiry. A
--          hash with more fields than a lock has is an error
-- Retry    safe

-- Needs fields
local fields = fields_of(KEYS[1])
return fields.err and fields or {redis.call('PTTL', KEYS[1]), fields}
