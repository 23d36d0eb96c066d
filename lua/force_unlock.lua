-- Releases a lock regardless of its holder, and announces the release.
-- KEYS[1]  lock: hash of owner -> hold count
-- ARGV[1]  channel of the lock
-- ARGV[2]  unlock message
-- ARGV[3]  PUBLISH, SPUBLISH or BOTH, see common/classic.lua
-- Returns  {status, refusal} as release.lua, status -1 if the lock was free
-- Retry    safe, but a second run may free the lock of an owner that acquired it in between

-- HLEN instead of EXISTS, because a key of another type is not a lock, and the script must not
-- delete it.
local fields = redis.call('HLEN', KEYS[1])
if fields == 0 then return {-1, ''} end
-- Needs announce, bounds
if fields > max_entries then return {err = 'NOTLOCK the hash has ' .. fields .. ' fields'} end
redis.call('DEL', KEYS[1])
return {1, (announce(ARGV[3], ARGV[1], ARGV[2]))}
