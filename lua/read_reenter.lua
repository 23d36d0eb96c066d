--!df flags=allow-undeclared-keys
-- Adds a read hold to those that the owner has. Like reenter.lua it never acquires a free lock.
-- KEYS[1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds
-- KEYS[2]  the owner's read holds, without the number of each
-- ARGV[1]  owner
-- ARGV[2]  number of read holds to leave behind (absolute); the last of them is the new read hold
-- ARGV[3]  lease of the new read hold in milliseconds
-- Returns  1 = re-entered, 0 = the owner holds no read lock
-- Retry    safe: the number is absolute, and the lease of a hold never gets shorter

-- Needs reads
local count, odd = count_of(KEYS[1], ARGV[1])
if odd then return odd end
if remaining(KEYS[2], count) == -2 then
  -- Needs not_held
  return not_held(KEYS[1]) or 0
end
return take_read(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]) or 1
