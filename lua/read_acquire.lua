--!df flags=allow-undeclared-keys
-- Acquires a read lock for an owner, beside other readers or its own write lock.
-- KEYS[1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds
-- KEYS[2]  the owner's read holds, without the number of each
-- KEYS[3], KEYS[4], KEYS[5]  writer, reader and turn, see common/precedence.lua
-- ARGV[1]  owner
-- ARGV[2]  number of read holds to leave behind (absolute); the last of them is the new read hold
-- ARGV[3]  lease of the new read hold in milliseconds
-- ARGV[4]  1 = the owner waits, 2 = it waits and has waited before, 0 = it does not wait
-- ARGV[5]  milliseconds for which new readers step back for a writer, 0 = they do not
-- ARGV[6]  milliseconds after which the server forgets a waiter that does not ask again
-- Returns  nil if the owner holds the lock now, else {PTTL of the lock, holder, sleep}. A PTTL of
--          -1 means "held, no expiry", and -2 that a writer waits and has precedence; sleep is in
--          how many milliseconds to ask again, -1 = when the lease has ended
-- Retry    safe: the number is absolute, and the lease of a hold never gets shorter

-- Needs bounds, refused, reads, precedence
local mode, left = redis.call('HGET', KEYS[1], 'mode'), redis.call('PTTL', KEYS[1])
local count, odd = count_of(KEYS[1], ARGV[1])
if odd then return odd end
local known = remaining(KEYS[2], count) ~= -2
local bound = tonumber(ARGV[5])

local refusal
if mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[1] .. ':write') == 0
  or mode ~= 'write' and mode ~= 'read' and left ~= -2 then
  refusal = refused(KEYS[1], left, -1)
elseif bound > 0 and mode ~= 'write' and not known
  and not (ARGV[4] == '2' and redis.call('EXISTS', KEYS[5]) == 1) then
  local writer, sleep = waiting_writer(KEYS[3], bound, ARGV[6])
  refusal = writer and {-2, string.sub(writer, 1, max_text), sleep}
end
if refusal and bound > 0 and ARGV[4] ~= '0' then reader_waits(KEYS[4], ARGV[6]) end
return refusal
  or take_read(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], 'mode', mode or 'read')
