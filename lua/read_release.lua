-- Gives back one read hold, or all of an owner's.
--
-- KEYS[1]  lock: hash of `mode`, owner -> read holds, owner:write -> write holds; it lives as long as its longest hold
-- KEYS[2]  the owner's read holds, without the number of each
-- KEYS[3]  turn of readers that waited
-- ARGV[1]  owner
-- ARGV[2]  number of read holds to leave behind (absolute); 0 drops the owner whatever its number
-- ARGV[3]  what the read holds of all owners of this lock begin with
-- ARGV[4]  channel of the lock
-- ARGV[5]  message for the last reader's leaving, and for an end that comes sooner than those who wait may believe
-- ARGV[6]  PUBLISH or SPUBLISH
-- ARGV[7]  milliseconds that those who wait sleep at most
--
-- Returns  {status, refusal}: status -1 = not the owner's, 0 = holds are left, 1 = released; refusal as in release.lua
-- Retry    safe: a second run answers -1 or leaves the same number behind

-- Uses lower, announce, clock, reads, precedence
local count, left = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0), tonumber(ARGV[2])
local mode = redis.call('HGET', KEYS[1], 'mode')
if count == 0 or not mode then
  return {-1, ''}
end
local longest = remaining(KEYS[2], count)

if left > 0 then
  if longest == -2 then
    return {-1, ''}
  end
  -- Which of its holds a level had is not told: the longest lease is the owner's until it gives back the last. On a server
  -- without memory for it all stay what they are.
  if longest > 0 and extend_read(KEYS[2], left, longest) then
    return {0, ''}
  end
  local refusal = lower(KEYS[1], ARGV[1], left)
  if refusal then
    return refusal
  end
  for i = left + 1, count do
    redis.call('DEL', KEYS[2] .. ':' .. i)
  end
  return {0, ''}
end

local status = longest == -2 and -1 or 1
for i = 1, count do
  redis.call('DEL', KEYS[2] .. ':' .. i)
end
redis.call('HDEL', KEYS[1], ARGV[1])
if mode == 'write' then
  return {status, ''} -- the writer's own
end
local others = longest_read(KEYS[1], ARGV[3])
if others ~= -2 then
  -- Who waits went to sleep for a lease that has left with this reader. The one that is left may be of a reader that died,
  -- and nobody announces its end.
  local sooner = others >= 0 and others < math.min(tonumber(ARGV[7]), redis.call('PTTL', KEYS[1]))
  last_until(KEYS[1], others)
  local refusal = ''
  if sooner then
    local _
    _, refusal = announce(ARGV[6], ARGV[4], ARGV[5])
  end
  return {status, refusal}
end
redis.call('DEL', KEYS[1])
end_turn(KEYS[3])
local _, refusal = announce(ARGV[6], ARGV[4], ARGV[5])
return {status, refusal}
