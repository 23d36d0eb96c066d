--!df flags=allow-undeclared-keys
-- Releases one read hold, or all read holds of an owner.
-- KEYS[1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds
-- KEYS[2]  the owner's read holds, without the number of each
-- KEYS[3]  turn, see common/precedence.lua
-- ARGV[1]  owner
-- ARGV[2]  number of read holds to leave behind (absolute); 0 drops the owner whatever its number
-- ARGV[3]  prefix of the read holds of all owners of this lock
-- ARGV[4]  channel of the lock
-- ARGV[5]  message for when the last reader leaves, or a lease ends sooner than waiters may expect
-- ARGV[6]  PUBLISH, SPUBLISH or BOTH, see common/classic.lua
-- ARGV[7]  longest sleep of a waiter in milliseconds
-- Returns  {status, refusal} as release.lua
-- Retry    safe: a second run returns -1 or leaves the same number behind

-- Needs lower, not_held, announce, bounds, reads, precedence
-- An invalid count does not prevent a release.
local count, left = count_of(KEYS[1], ARGV[1]) or max_entries, tonumber(ARGV[2])
local mode = redis.call('HGET', KEYS[1], 'mode')
if count == 0 or not mode then return not_held(KEYS[1]) or {-1, ''} end
local longest = remaining(KEYS[2], count)

if left > 0 then
  if longest == -2 then return not_held(KEYS[1]) or {-1, ''} end
  -- The script does not know which of the leases belongs to this hold, so the longest lease stays
  -- until the owner releases its last hold. If the server has no memory for that, all holds stay as
  -- they are.
  if longest > 0 and extend_read(KEYS[2], left, longest) then return {0, ''} end
  local refusal = lower(KEYS[1], ARGV[1], left)
  if refusal then return refusal end
  for i = left + 1, count do redis.call('DEL', KEYS[2] .. ':' .. i) end
  return {0, ''}
end

local status = longest == -2 and -1 or 1
for i = 1, count do redis.call('DEL', KEYS[2] .. ':' .. i) end
redis.call('HDEL', KEYS[1], ARGV[1])
if mode == 'write' then return {status, ''} end -- the reader is also the writer
local others = longest_read(KEYS[1], ARGV[3])
local announced = true
if others == -2 then
  redis.call('DEL', KEYS[1])
  end_turn(KEYS[3])
else
  -- Waiters sleep until the end of this reader's lease, which no longer counts. The remaining lease
  -- may belong to a dead reader, and no message announces its end.
  announced = others >= 0 and others < math.min(tonumber(ARGV[7]), redis.call('PTTL', KEYS[1]))
  last_until(KEYS[1], others)
end
return {status, announced and announce(ARGV[6], ARGV[4], ARGV[5]) or ''}
