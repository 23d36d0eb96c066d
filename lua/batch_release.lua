-- Releases a nested hold of each of several locks, or the whole lock.
-- KEYS[i]    lock: hash of owner -> hold count; its TTL is the lease
-- ARGV[5i-4] owner of KEYS[i]
-- ARGV[5i-3] hold count to leave behind (absolute); 0 drops the owner whatever its count
-- ARGV[5i-2] channel of KEYS[i]
-- ARGV[5i-1] unlock message
-- ARGV[5i]   PUBLISH, SPUBLISH or BOTH, see common/classic.lua
-- Returns  a list: for each lock {status, refusal} as release.lua, or the server's error for it
-- Retry    safe: a second run returns -1 or leaves the same counts behind

-- Needs attempt, lower, not_held, announce, unpack
-- release does the same as release_only.lua, but returns errors, so that the script releases all
-- locks.
local function release(lock, owner, count, channel, message, verb)
  local held, refusal = attempt('HEXISTS', lock, owner)
  if held == 0 then return not_held(lock) or {-1, ''} end
  if held and tonumber(count) > 0 then return lower(lock, owner, count) or {0, ''} end
  if held then held, refusal = attempt('HDEL', lock, owner) end
  if not held then return refusal end
  return {1, (announce(verb, channel, message))}
end

local outcomes = {}
for i, lock in ipairs(KEYS) do
  outcomes[i] = release(lock, unpack(ARGV, 5 * i - 4, 5 * i))
end
return outcomes
