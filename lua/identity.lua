-- Reads the process of a client. Changes nothing.
-- KEYS[1]  client: see identify.lua
-- Returns  {field, value, ...}, empty if the client has not recorded its process
-- Retry    safe

-- Needs fields
return shorten(redis.call('HRANDFIELD', KEYS[1], 16, 'WITHVALUES'))
