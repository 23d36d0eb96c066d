-- Releases a nested hold of a lock; or the whole lock, which it announces and never hands over.
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute); 0 drops the owner whatever its count
-- ARGV[3]  channel of the lock
-- ARGV[4]  PUBLISH, SPUBLISH or BOTH, see common/classic.lua
-- Returns  status, or {status, refusal} or {status, refusal, 1} as release.lua
-- Retry    safe: a second run returns -1 or leaves the same count behind

if tonumber(ARGV[2]) > 0 then
  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    -- Needs not_held
    return not_held(KEYS[1]) or -1
  end
  -- Needs lower
  return lower(KEYS[1], ARGV[1], ARGV[2]) or 0
end
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return -1 end
local channel, both = ARGV[3], ARGV[4] == 'BOTH'
local verb = both and 'SPUBLISH' or ARGV[4]
-- These lines do the same as announce. Creating its functions would cost a server as much as one
-- more command.
local heard = redis.pcall(verb, channel, '0')
local refusal = type(heard) ~= 'number' and heard.err
if both then
  local listening = redis.pcall('PUBSUB', 'NUMSUB', channel, 'holdfast_classic:' .. channel)
  if listening.err or listening[2] ~= listening[4] then
    -- Needs announce
    local another = announce('PUBLISH', channel, '0')
    return {1, refusal or another, listening.err and 0 or 1}
  end
end
return refusal and {1, refusal} or 1
