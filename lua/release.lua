-- Gives back one level of a lock, or the whole of it. What is given back as a whole goes to somebody who waits, or is
-- announced.
--
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  waiters; left out: nobody is given the lock
-- KEYS[3]  token: the number of the last acquisition; left out for a plain lock
-- ARGV[1]  owner
-- ARGV[2]  hold count to leave behind (absolute); 0 drops the owner whatever its count
-- ARGV[3]  channel of the lock
-- ARGV[4]  unlock message
-- ARGV[5]  PUBLISH or SPUBLISH
-- ARGV[6]  channel of those who may have a place; '' = nobody in other processes is given the lock
-- ARGV[7]  how often the lock has been passed on since it was free; this and what follows may be left out
-- ARGV[8]  since when, in milliseconds of the clock of the server; 0 = that was not noted
-- ARGV[9]  place of the next one in the process of the owner, '' = nobody is next
-- ARGV[10] 1 = the next one comes before those who wait in other processes
-- ARGV[11] place to be given up, '' = none
--
-- Returns  status, or {status, refusal, number}: status -1 = not the owner's, 0 = levels are left, 1 = released, 3 = the next
--          one has the lock, 4 = a waiter of another process has; refusal is the server's error text when it let the release
--          through but not the message, else ''; number is the token with status 3, and the ticket of the next one with 4.
--          With status 3 since when it is passed on may follow, as in ARGV[8]
-- Retry    safe: a second run answers -1 or leaves the same count behind

local lock, waiters, present, next = KEYS[1], KEYS[2], ARGV[6], ARGV[9] or ''
if waiters and ARGV[11] and ARGV[11] ~= '' then
  redis.pcall('ZREM', waiters, ARGV[11]) -- a lock can be released all the same
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
local turns, began = tonumber(ARGV[7] or 0) + 1, tonumber(ARGV[8] or 0)
local first = next ~= '' and ARGV[10] == '1'
-- It is free for once after it has been passed on 16 times at least and for 100 ms, or 4 times and for a second: there may be
-- somebody who waits whom we cannot see, such as one that asks again and again.
local free = false
if turns % 4 == 0 and began > 0 then
  -- Uses clock
  local known, time = pcall(now)
  local lasts = known and time - began or -1 -- a clock may be set back
  free = lasts < 0 or lasts > (turns % 16 == 0 and 100 or 1000)
end
local popped = waiters and present ~= '' and not first and not free and redis.pcall('ZPOPMIN', waiters)
if first or popped and (popped[1] or next ~= '') then
  -- Uses attempt, clock, waiters, advice, passing
  local token = KEYS[3]
  if not first and began == 0 then
    local known, time = pcall(now)
    began = known and time or 0
  end
  local owner = not first and pass_on(not popped.err and popped, lock, waiters, token, ARGV[1], ARGV[5], ARGV[3], present, turns, began)
  if owner then
    if next == '' or owner == string.match(next, '^%S+') then
      return 4
    end
    local enlisted, ticket = pcall(enlist, waiters, next)
    return {4, '', enlisted and ticket or 0}
  end
  if first or owner == nil and next ~= '' and listeners(ARGV[5], ARGV[3], present, present) == 0 then
    attempt('ZREM', waiters, next)
    local fence = give(lock, token, next)
    if fence then
      advise(ARGV[5], ARGV[3], string.match(next, ' (%d+) %a$'))
      return {3, '', fence, not first and began or nil}
    end
  end
end
-- Uses announce
local _, refusal = announce(ARGV[5], ARGV[3], ARGV[4])
return refusal == '' and 1 or {1, refusal, 0}
