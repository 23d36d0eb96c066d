--!df flags=allow-undeclared-keys
-- Releases a read-write lock of all its readers, or of its writer.
-- KEYS[1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds
-- ARGV[1]  mode to release the lock of: read or write
-- ARGV[2]  prefix of the read holds of all owners of this lock
-- ARGV[3]  channel of the lock
-- ARGV[4]  unlock message
-- ARGV[5]  PUBLISH, SPUBLISH or BOTH, see common/classic.lua
-- Returns  {status, refusal} as release.lua, status -1 if no owner held the lock in that mode
-- Retry    safe, but a second run may free the lock of an owner that acquired it in between

-- Needs announce, bounds, reads
if redis.call('HGET', KEYS[1], 'mode') ~= ARGV[1] then return {-1, ''} end
local fields = redis.call('HLEN', KEYS[1])
if fields > max_entries then return {err = 'NOTLOCK the hash has ' .. fields .. ' fields'} end
each_reader(KEYS[1], ARGV[2], function(_, holds, count)
  for i = 1, count do redis.call('DEL', holds .. ':' .. i) end
end)
redis.call('DEL', KEYS[1])
return {1, (announce(ARGV[5], ARGV[3], ARGV[4]))}
