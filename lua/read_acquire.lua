-- Takes a read lock for one owner, or says who is in the way and for how long. Readers share the lock with each other, and
-- with the writer that has the same owner.
--
-- KEYS[1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds; it lives as long as its longest hold
-- KEYS[2]  the owner's read holds, without the number of each
-- KEYS[3]  writer that waits
-- KEYS[4]  readers that wait, or have their turn
-- ARGV[1]  owner
-- ARGV[2]  number of read holds to leave behind (absolute); the last of them is the one to take
-- ARGV[3]  its lease in milliseconds
-- ARGV[4]  1 = the owner waits, 0 = it does not
-- ARGV[5]  milliseconds for which new readers step back for a writer, 0 = they do not
-- ARGV[6]  milliseconds after which one that waits and does not ask again is forgotten
--
-- Uses     hold, clock, reads, precedence
-- Returns  nil when the owner holds the lock now, else {PTTL of the lock, holder, nap}. A PTTL of -1 means "held, no expiry",
--          and -2 that the holder waits and has precedence; nap is when to look again, -1 when the lease should be over
-- Retry    safe: the number is absolute, and a hold's lease is never shortened

local mode = redis.call('HGET', KEYS[1], 'mode')
local bound = tonumber(ARGV[5])
if mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 0
  or not mode and redis.call('PTTL', KEYS[1]) ~= -2 then
  if bound > 0 and ARGV[4] == '1' then
    redis.pcall('SET', KEYS[4], 'waiting', 'PX', ARGV[6])
  end
  return refused(KEYS[1], -1)
end
local known = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if bound > 0 and mode ~= 'write' and not known then
  local writer, left = waiting_writer(KEYS[3], KEYS[4], bound)
  if writer then
    return {-2, writer, left}
  end
end

local created = redis.call('PTTL', KEYS[1]) == -2
local refusal = grant(KEYS[1], ARGV[3], 'mode', mode or 'read', ARGV[1], ARGV[2])
if not refusal then
  refusal = extend_read(KEYS[2], ARGV[2], ARGV[3])
  if refusal and created then
    redis.call('DEL', KEYS[1])
  elseif refusal and not known then
    redis.call('HDEL', KEYS[1], ARGV[1])
  end
end
return refusal
