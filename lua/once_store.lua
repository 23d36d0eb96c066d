-- Stores the result of a run, unless the lock was lost meanwhile.
-- KEYS[1]  lock: hash of owner -> hold count
-- KEYS[2]  record: "token run", or "token run print result" if the key has a result
-- ARGV[1]  owner
-- ARGV[2]  run
-- ARGV[3]  record with the result
-- ARGV[4]  lifetime of the result in milliseconds
-- Returns  1 = stored; a record with a result that was stored before; 0 = nothing is stored, because
--          the owner does not hold the lock or a later run has begun
-- Retry    safe: a result is never replaced

local record = redis.call('GET', KEYS[2])
local run, more = string.match(record or '', '^%d+ ([^ ]+)( ?)')
if more == ' ' then return record end
-- Without a record, the run took longer than the lifetime of its record. No later run has begun,
-- because the owner holds the lock.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 or record and run ~= ARGV[2] then
  -- Needs not_held
  return not_held(KEYS[1]) or 0
end
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
return 1
