-- Releases all holds of a lock, and hands it over or announces it. Exclusive.Release in
-- exclusive.go chooses this script for the last hold, or release_only.lua without a hand-over.
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  waiters: sorted set of registration -> ticket
-- KEYS[3]  fence: the number of the last acquisition; left out for a plain lock
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock; all from ARGV[3] or from ARGV[5] on may be left out: [default]
-- ARGV[3]  PUBLISH, SPUBLISH or BOTH, see common/classic.lua [PUBLISH]
-- ARGV[4]  1 = a registered waiter may get the lock, 0 = only a successor by ARGV[8] [1]
-- ARGV[5]  hand-overs: how often the lock was handed over since it was free [0]
-- ARGV[6]  time of the second hand-over, in milliseconds of the server's clock; 0 = unknown [0]
-- ARGV[7]  registration of the successor, '' = there is no successor ['']
-- ARGV[8]  1 = the successor comes before waiters of other processes [0]
-- ARGV[9]  registration to withdraw, '' = none ['']
-- Returns  status, or {status, refusal, number, since}: status -1 = the owner did not hold the
--          lock, 0 = nested holds are left, 1 = released, 3 = the successor has the lock, 4 = a
--          waiter has it. refusal is the server's error if it rejected only the message, else ''.
--          number is the fence with status 3, and the successor's ticket with status 4. With status
--          1 it is 1 if other clients listened on the classic channel, which the script counts only
--          with BOTH. since is ARGV[6] from now on, or left out
-- Retry    safe: a second run returns -1

local lock, waiters, channel, both = KEYS[1], KEYS[2], ARGV[2], ARGV[3] == 'BOTH'
local verb = both and 'SPUBLISH' or ARGV[3] or 'PUBLISH'
local streak, began, successor, first = 1, 0, nil, false
if ARGV[5] then
  streak, began = tonumber(ARGV[5]) + 1, tonumber(ARGV[6])
  successor = ARGV[7] ~= '' and ARGV[7] or nil
  first = successor and ARGV[8] == '1'
  if ARGV[9] ~= '' then redis.pcall('ZREM', waiters, ARGV[9]) end -- ignores errors
end
if redis.call('HDEL', lock, ARGV[1]) == 0 then return -1 end

-- From here on no command may abort the script, because the lock is free, and a waiter must get a
-- message. After 16 hand-overs and 100 ms, or 4 hand-overs and a second, the lock stays free once,
-- because an owner without a registration may wait, for example by polling.
local announced = false
local classic -- how many other clients listen on the classic channel, once they are counted
if streak % 4 == 0 and began > 0 then
  -- Needs clock
  local known, time = pcall(now)
  local lasts = known and time - began or -1 -- negative if the clock was set back
  announced = lasts < 0 or lasts > (streak % 16 == 0 and 100 or 1000)
end
local popped = ARGV[4] ~= '0' and not first and not announced and redis.pcall('ZPOPMIN', waiters)
if first or popped and (popped[1] or successor and not popped.err) then
  -- Needs attempt, clock, waiters, advice, grant
  local token, owner = KEYS[3], nil
  local present = 'holdfast_lock_present' .. string.sub(channel, #'redisson_lock__channel' + 1)
  if not first then
    if both then
      -- Needs classic
      classic = classic_listeners(channel)
    end
    if began == 0 and streak > 1 then -- the first hand-over does not need the clock
      local known, time = pcall(now)
      began = known and time or 0
    end
    owner = grant_oldest(popped, lock, waiters, token, ARGV[1], verb, channel, present,
      classic or 0, streak .. ' ' .. whole(began))
  end
  if owner then
    if not successor or owner == string.match(successor, '^%S+') then return 4 end
    local registered, ticket = pcall(register, waiters, successor)
    return {4, '', registered and ticket or 0}
  end
  if first
    or owner == nil and successor
      and listeners(verb, channel, present, present, classic or 0) == 0 then
    attempt('ZREM', waiters, successor)
    local fence = grant(lock, token, successor)
    if fence then
      advise(verb, channel, lease_of(successor))
      return {3, '', fence, not first and began or nil}
    end
  end
end
-- These lines do the same as announce. Creating its functions would cost a server as much as one
-- more command.
local heard = redis.pcall(verb, channel, '0')
local refusal = type(heard) ~= 'number' and heard.err
if both then
  if not classic then
    local listening = redis.pcall('PUBSUB', 'NUMSUB', channel, 'holdfast_classic:' .. channel)
    classic = not listening.err and listening[2] - listening[4]
  end
  if classic ~= 0 then -- some clients listen, or the server rejected the count
    -- Needs announce
    local another = announce('PUBLISH', channel, '0')
    return {1, refusal or another, classic and 1 or 0}
  end
end
return refusal and {1, refusal} or 1
