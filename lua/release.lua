-- Gives back one level of a lock, or the whole of it. What is given back as a whole goes to somebody who waits, or is
-- announced.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  waiters; left out: nobody is given the lock
-- KEYS[3]  run: how often the lock has been passed on since it was free; its TTL tells since when that is
-- KEYS[4]  token: the number of the last acquisition; left out for a plain lock
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute); 0 drops the owner whatever its count
-- ARGV[3]  channel of the lock
-- ARGV[4]  unlock message
-- ARGV[5]  PUBLISH or SPUBLISH
-- ARGV[6]  channel of those who may have a place; '' = nobody in other processes is given the lock
-- ARGV[7]  place of the next one in the process of the owner, '' = nobody is next; this and what follows may be left out
-- ARGV[8]  1 = the next one comes before those who wait in other processes
-- ARGV[9]  place to be given up, '' = none
--
-- Returns  status, or {status, refusal, number}: status -1 = not the owner's, 0 = levels are left, 1 = released, 3 = the next
--          one has the lock, 4 = a waiter of another process has; refusal is the server's error text when it let the release
--          through but not the message, else ''; number is the token with status 3, and the ticket of the next one with 4
-- Retry    safe: a second run answers -1 or leaves the same count behind

local lock, waiters, present, next = KEYS[1], KEYS[2], ARGV[6], ARGV[7] or ''
if waiters and ARGV[9] and ARGV[9] ~= '' then
  redis.pcall('ZREM', waiters, ARGV[9]) -- a lock can be released all the same
end
if tonumber(ARGV[2]) > 0 then
  if redis.call('HEXISTS', lock, ARGV[1]) == 0 then
    return -1
  end
  -- Uses lower
  return lower(lock, ARGV[1], ARGV[2]) or 0
end
if redis.call('HDEL', lock, ARGV[1]) == 0 then
  return -1
end

-- From here on nothing may fail: the lock is free, and somebody has to hear of it.
-- Uses attempt, announce
if waiters and (next ~= '' or present ~= '' and attempt('EXISTS', waiters, KEYS[3]) ~= 0) then
  -- Uses waiters, passing
  local token = KEYS[4]

  -- given: gives the lock to the next one.
  local function given()
    attempt('ZREM', waiters, next)
    local fence = give(lock, token, next)
    return fence and {3, '', fence}
  end

  if next ~= '' and ARGV[8] == '1' then
    local answer = given()
    if answer then
      return answer
    end
  elseif present ~= '' then
    if listeners(ARGV[5], ARGV[3], present) == 0 and not long_closed(KEYS[3]) then
      local owner = pass_on(lock, waiters, token, ARGV[5], present, ARGV[1])
      if owner then
        if next == '' or owner == string.match(next, '^%S+') then
          return 4
        end
        local enlisted, ticket = pcall(enlist, waiters, next)
        return {4, '', enlisted and ticket or 0}
      end
      local answer = owner == nil and next ~= '' and given()
      if answer then
        return answer
      end
    end
    attempt('DEL', KEYS[3])
  end
end
local _, refusal = announce(ARGV[5], ARGV[3], ARGV[4])
return refusal == '' and 1 or {1, refusal, 0}
