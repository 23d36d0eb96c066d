-- Gives back one level of each of several locks, or the whole of it.
--
-- KEYS[i]    lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[5i-4] owner of KEYS[i]
-- ARGV[5i-3] hold count to leave behind (absolute); 0 drops the owner whatever its count
-- ARGV[5i-2] channel of KEYS[i]
-- ARGV[5i-1] unlock message
-- ARGV[5i]   PUBLISH or SPUBLISH
--
-- Returns  a list: for each lock {status, refusal} as release.lua does, or the error that the server gave for this lock
-- Retry    safe: a second run answers -1 or leaves the same counts behind

-- Uses lower, announce

-- leave: what release.lua does, for one lock. An error is returned and not raised: it must not keep the other locks.
local function leave(lock, owner, count, channel, message, verb)
  local held = redis.pcall('HEXISTS', lock, owner)
  if type(held) == 'table' then
    return held
  elseif held == 0 then
    return {-1, ''}
  elseif tonumber(count) > 0 then
    return lower(lock, owner, count) or {0, ''}
  end
  local dropped = redis.pcall('HDEL', lock, owner)
  if type(dropped) == 'table' then
    return dropped
  end
  local _, refusal = announce(verb, channel, message)
  return {1, refusal}
end

local outcomes = {}
for i, lock in ipairs(KEYS) do
  outcomes[i] = leave(lock, unpack(ARGV, 5 * i - 4, 5 * i))
end
return outcomes
