-- Gives back one write hold, or all of an owner's and its precedence over readers. With read holds of its own it becomes a
-- reader; in either case waiting readers are let in.
--
-- KEYS[1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds; it lives as long as its longest hold
-- KEYS[2]  writer that waits
-- KEYS[3]  readers that wait
-- KEYS[4]  turn of readers that waited
-- ARGV[1]  owner, with :write
-- ARGV[2]  number of write holds to leave behind (absolute); 0 drops the owner whatever its number
-- ARGV[3]  what the read holds of all owners of this lock begin with
-- ARGV[4]  channel of the lock
-- ARGV[5]  message for the writer's leaving
-- ARGV[6]  PUBLISH or SPUBLISH
-- ARGV[7]  milliseconds for which waiting readers have their turn now, 0 = readers and writers have no precedence
-- ARGV[8]  writer that gets the lock if no readers wait, with :write; '' = none
-- ARGV[9]  its lease in milliseconds
--
-- Returns  {status, refusal}: status -1 = not the owner's, 0 = holds are left, 1 = released, 2 = released, and the owner is
--          a reader now, 3 = the next writer has the lock; refusal as in release.lua
-- Retry    safe: a second run answers -1 or leaves the same number behind

-- Uses lower, announce, advice, clock, reads, precedence
local held, left, turn = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1, tonumber(ARGV[2]), tonumber(ARGV[7])
if held and left > 0 then
  return lower(KEYS[1], ARGV[1], left) or {0, ''}
end
local waited = left == 0 and turn > 0 and stop_waiting(KEYS[2], ARGV[1])

local status = -1
if held then
  redis.call('HDEL', KEYS[1], ARGV[1])
  local longest = longest_read(KEYS[1], ARGV[3])
  if longest == -2 and ARGV[8] ~= '' and redis.pcall('EXISTS', KEYS[3]) == 0 then
    local done = redis.pcall('HSET', KEYS[1], ARGV[8], 1)
    if type(done) ~= 'table' then
      done = redis.pcall('PEXPIRE', KEYS[1], ARGV[9])
    end
    if type(done) ~= 'table' then
      if turn > 0 then
        stop_waiting(KEYS[2], ARGV[8])
      end
      advise(ARGV[6], ARGV[4], ARGV[9])
      return {3, ''}
    end
  end
  if longest == -2 then
    redis.call('DEL', KEYS[1])
    status = 1
  else
    redis.call('HSET', KEYS[1], 'mode', 'read')
    last_until(KEYS[1], longest)
    status = 2
  end
  if turn > 0 then
    take_turns(KEYS[3], KEYS[4], turn)
  end
end
local refusal = ''
if held or waited then
  local _
  _, refusal = announce(ARGV[6], ARGV[4], ARGV[5])
end
return {status, refusal}
