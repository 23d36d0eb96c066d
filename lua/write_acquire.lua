-- Takes a write lock for one owner, or says who is in the way and for how long. A writer has the lock for itself.
--
-- KEYS[1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds; it lives as long as its longest hold
-- KEYS[2]  writer that waits
-- KEYS[3]  turn of readers that waited
-- ARGV[1]  owner, with :write
-- ARGV[2]  number of write holds to leave behind (absolute)
-- ARGV[3]  lease in milliseconds
-- ARGV[4]  1 = the owner waits, 0 = it does not
-- ARGV[5]  milliseconds for which new readers step back for a writer, 0 = they do not
-- ARGV[6]  milliseconds after which one that waits and does not ask again is forgotten
--
-- Returns  nil when the owner holds the lock now, else {PTTL of the lock, holder, nap}. A PTTL of -1 means "held, no expiry",
--          and -2 that it is free and readers have their turn; nap is when to look again, -1 when the lease should be over
-- Retry    safe: the number is absolute, and the TTL is never shortened

-- Uses refused, grant, clock, precedence
local bound = tonumber(ARGV[5])
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  if redis.call('PTTL', KEYS[1]) ~= -2 then
    if bound > 0 and ARGV[4] == '1' and redis.call('HGET', KEYS[1], 'mode') == 'read' then
      await_readers(KEYS[2], ARGV[1], bound, ARGV[6])
    end
    return refused(KEYS[1], -1)
  end
  local turn = bound > 0 and redis.call('PTTL', KEYS[3]) or 0
  if turn > 0 then
    return {-2, '', turn}
  end
end
local refusal = grant(KEYS[1], redis.call('PTTL', KEYS[1]), ARGV[3], 'mode', 'write', ARGV[1], ARGV[2])
if not refusal and bound > 0 then
  stop_waiting(KEYS[2], ARGV[1])
end
return refusal
