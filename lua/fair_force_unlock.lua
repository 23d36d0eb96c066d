-- Releases a fair lock regardless of its holder, and notifies the head of its queue.
-- KEYS[1] to KEYS[5], ARGV[1] to ARGV[5] as in common/queue.lua
-- Returns  {status, refusal} as release.lua, status -1 if the lock was free
-- Retry    safe, but a second run may free the lock of an owner that acquired it in between

-- Needs bounds, clock, queue, turn
local status = -1
-- HLEN instead of EXISTS, because a key of another type is not a lock, and the script must not
-- delete it.
local fields = redis.call('HLEN', lock)
if fields > max_entries then return {err = 'NOTLOCK the hash has ' .. fields .. ' fields'} end
if fields > 0 then
  redis.call('DEL', lock, turn)
  status = 1
end
local time = now()
sweep({}, time, -2)
return {status, (offer(time, nil))}
