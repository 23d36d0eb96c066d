-- Reads who a client is. Changes nothing.
-- KEYS[1]  client: see identify.lua
-- Returns  {field, value, ...}, of which there are none if the client has not noted it
-- Retry    safe

-- Needs fields
return shorten(redis.call('HRANDFIELD', KEYS[1], 16, 'WITHVALUES'))
