--!df flags=allow-undeclared-keys
-- Releases one write hold; or all of an owner, which may stay a reader, and lets readers pass.
-- KEYS[1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds
-- KEYS[2], KEYS[3], KEYS[4]  writer, reader and turn, see common/precedence.lua
-- ARGV[1]  owner, with :write
-- ARGV[2]  number of write holds to leave behind (absolute); 0 drops the owner whatever its number
-- ARGV[3]  prefix of the read holds of all owners of this lock
-- ARGV[4]  channel of the lock
-- ARGV[5]  message for when the writer leaves
-- ARGV[6]  PUBLISH, SPUBLISH or BOTH, see common/classic.lua
-- ARGV[7]  milliseconds of the turn of waiting readers, 0 = there is no precedence
-- ARGV[8]  successor, with :write: the writer that gets the lock if no readers wait; '' = none
-- ARGV[9]  lease of the successor in milliseconds
-- Returns  {status, refusal} as release.lua, or with status 2 = released, and the owner is a reader
--          now, or 3 = the successor has the lock
-- Retry    safe: a second run returns -1 or leaves the same number behind

-- Needs attempt, lower, announce, longest_sleep, reads, precedence
local held = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
local left, turn = tonumber(ARGV[2]), tonumber(ARGV[7])
if not held then
  -- Needs not_held
  local refusal = not_held(KEYS[1])
  if refusal then return refusal end
end
if held and left > 0 then return lower(KEYS[1], ARGV[1], left) or {0, ''} end
local waited = left == 0 and turn > 0 and stop_waiting(KEYS[2], ARGV[1])

local status = -1
if held then
  redis.call('HDEL', KEYS[1], ARGV[1])
  local longest = longest_read(KEYS[1], ARGV[3])
  if longest == -2 and ARGV[8] ~= '' and attempt('EXISTS', KEYS[3]) == 0
    and attempt('HSET', KEYS[1], ARGV[8], 1) and attempt('PEXPIRE', KEYS[1], ARGV[9]) then
    if turn > 0 then stop_waiting(KEYS[2], ARGV[8]) end
    local verb = ARGV[6] == 'BOTH' and 'SPUBLISH' or ARGV[6]
    if tonumber(ARGV[9]) < longest_sleep then attempt(verb, ARGV[4], ARGV[9]) end
    return {3, ''}
  end
  if longest == -2 then
    redis.call('DEL', KEYS[1])
    status = 1
  else
    redis.call('HSET', KEYS[1], 'mode', 'read')
    last_until(KEYS[1], longest)
    status = 2
  end
  if turn > 0 then begin_turn(KEYS[3], KEYS[4], turn) end
end
return {status, (held or waited) and announce(ARGV[6], ARGV[4], ARGV[5]) or ''}
