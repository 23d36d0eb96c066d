-- Acquires a write lock for an owner, or returns the holder.
-- KEYS[1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds
-- KEYS[2], KEYS[3]  writer and turn, see common/precedence.lua
-- ARGV[1]  owner, with :write
-- ARGV[2]  number of write holds to leave behind (absolute)
-- ARGV[3]  lease in milliseconds
-- ARGV[4]  1 = the owner waits, 0 = it does not
-- ARGV[5]  milliseconds for which new readers step back for a writer, 0 = they do not
-- ARGV[6]  milliseconds after which the server forgets a waiter that does not ask again
-- Returns  as read_acquire.lua; a PTTL of -2 means that the lock is free during a turn of readers
-- Retry    safe: the number is absolute, and the TTL never gets shorter

-- Needs refused, take, precedence
local bound, left = tonumber(ARGV[5]), redis.call('PTTL', KEYS[1])
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  if left ~= -2 then
    if bound > 0 and ARGV[4] == '1' and redis.call('HGET', KEYS[1], 'mode') == 'read' then
      writer_waits(KEYS[2], ARGV[1], bound, ARGV[6])
    end
    return refused(KEYS[1], left, -1)
  end
  local turn = bound > 0 and redis.call('PTTL', KEYS[3]) or 0
  if turn > 0 then return {-2, '', turn} end
end
local refusal = take(KEYS[1], left, ARGV[3], 'mode', 'write', ARGV[1], ARGV[2])
if not refusal and bound > 0 then stop_waiting(KEYS[2], ARGV[1]) end
return refusal
