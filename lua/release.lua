-- Releases all holds of a lock, and hands it over or announces it. Exclusive.Release in
-- exclusive.go chooses this script for the last hold, or release_only.lua without a hand-over.
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  waiters: sorted set of registration -> ticket
-- KEYS[3]  fence: the number of the last acquisition; left out for a plain lock
-- ARGV[1]  owner
-- ARGV[2]  channel of the lock; all from ARGV[3], ARGV[5] or ARGV[7] on may be left out: [default]
-- ARGV[3]  hand-overs: how often the lock was handed over since it was free, with this one [1]
-- ARGV[4]  time of the second hand-over, in milliseconds of the server's clock; 0 = unknown [0]
-- ARGV[5]  PUBLISH, SPUBLISH or BOTH, see common/classic.lua [PUBLISH]
-- ARGV[6]  1 = a registered waiter may get the lock, 0 = only a successor by ARGV[8] [1]
-- ARGV[7]  registration of the successor, '' = there is no successor ['']
-- ARGV[8]  1 = the successor comes before waiters of other processes [0]
-- ARGV[9]  registration to withdraw, '' = none ['']
-- Returns  status, or {status, refusal, number, since}: status -1 = the owner did not hold the
--          lock, 0 = nested holds are left, 1 = released, 3 = the successor has the lock, 4 = a
--          waiter has it. refusal is the server's error if it rejected only the message, else ''.
--          number is the fence with status 3, and the successor's ticket with status 4. With status
--          1 it is 1 if other clients listened on the classic channel, which the script counts only
--          with BOTH. since is ARGV[4] from now on, or left out
-- Retry    safe: a second run returns -1

local lock, waiters, token, channel = KEYS[1], KEYS[2], KEYS[3], ARGV[2]
local streak, began = ARGV[3] or '1', ARGV[4] or '0'
local both = ARGV[5] == 'BOTH'
local verb, others = both and 'SPUBLISH' or ARGV[5] or 'PUBLISH', ARGV[6] ~= '0'
local successor, first = nil, false
if ARGV[7] then
  successor = ARGV[7] ~= '' and ARGV[7] or nil
  first = successor and ARGV[8] == '1'
  if ARGV[9] ~= '' then redis.pcall('ZREM', waiters, ARGV[9]) end -- ignores errors
end
if redis.call('HDEL', lock, ARGV[1]) == 0 then return -1 end

-- From here on no command may abort the script, because the lock is free, and a waiter must get a
-- message. After 16 hand-overs and 100 ms, or 4 hand-overs and a second, the lock stays free once,
-- because an owner without a registration may wait, for example by polling.
if others and not first and began ~= '0' and streak % 4 == 0 then
  -- Needs clock
  local known, time = pcall(now)
  local lasts = known and time - began or -1 -- negative if the clock was set back
  others = lasts >= 0 and lasts <= (streak % 16 == 0 and 100 or 1000)
end
local classic -- how many other clients listen on the classic channel, once they are counted
local popped = first and {} or others and redis.pcall('ZPOPMIN', waiters)
if popped and (popped[1] or successor and not popped.err) then
  -- These lines hand a hot lock on, so they call commands directly, and create functions only where
  -- they need them.
  -- Needs longest_sleep
  local present = 'holdfast_lock_present' .. string.sub(channel, #'redisson_lock__channel' + 1)
  local count = verb == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  if both and not first then
    -- Needs classic
    classic = classic_listeners(channel)
  end
  if began == '0' and streak ~= '1' and not first then -- the first hand-over needs no clock
    -- Needs clock
    local known, time = pcall(now)
    began = known and whole(time) or '0'
  end

  -- Each turn tries one waiter, oldest first, and after the last waiter the successor. A turn skips
  -- the leaving owner, and waiters whose client does not listen. The loop ends without a hand-over
  -- if nobody is left, if the server rejects a command, as a cluster does while a slot moves, if a
  -- client listens that does not register, or if holdfast did not write the registration.
  for turn = 1, 100 do
    if turn > 1 then popped = others and redis.pcall('ZPOPMIN', waiters) or {} end
    local waiter, ticket = popped[1], popped[2]
    local owner, client, lease, kind = string.match(waiter or successor or '',
      '^(([^: ]*)[^ ]*) (%d+) (%a+)$')
    if popped.err or not owner then break end
    local mine, heard = present .. ':' .. client, 1
    if waiter and owner == ARGV[1] then
      heard = 0
    elseif not first then
      -- The clients that listen on channel, but not on present, do not register when they wait,
      -- like clients of Redisson. A client that may register also listens on present, and while it
      -- waits without a registration on :announce as well. The script counts listeners before it
      -- publishes, because a listener on a replica, for example a demoted master, receives what
      -- this server publishes, but this server does not count it.
      local counts = redis.pcall('PUBSUB', count, channel, present, present .. ':announce', mine)
      if counts.err or counts[2] - counts[4] + counts[6] + (classic or 0) ~= 0 then
        if waiter then
          -- Needs attempt, waiters
          attempt('ZADD', waiters, ticket, waiter)
          local alone = (attempt('PTTL', waiters) or -1) < 0
          if alone then attempt('PEXPIRE', waiters, lasting) end
        end
        break
      end
      if waiter then heard = counts[8] end
    end
    if heard > 0 then
      if not waiter then redis.pcall('ZREM', waiters, successor) end
      local fence = '0' -- a text, because Lua would format a number for each message
      if kind == 'fenced' then
        -- INCR comes before the lock is granted, because an unused number does no harm.
        -- Needs attempt
        fence = token and attempt('INCR', token) and attempt('GET', token)
      end
      if not fence or type(redis.pcall('HSET', lock, owner, '1')) ~= 'number'
        or type(redis.pcall('PEXPIRE', lock, lease)) ~= 'number' then
        redis.pcall('HDEL', lock, owner)
        break
      end
      if not waiter then
        if tonumber(lease) < longest_sleep then redis.pcall(verb, channel, lease) end
        return {3, '', fence, not first and tonumber(began) or nil}
      end
      -- If the leaving owner belongs to the notified client, the ticket in the message has a plus
      -- sign, which every parser of numbers accepts.
      local here = string.sub(ARGV[1], 1, #client + 1) == client .. ':' and '+' or ''
      if type(ticket) == 'number' then ticket = string.format('%.0f', ticket) end -- on Dragonfly
      local reached = redis.pcall(verb, mine, owner .. ' ' .. here .. ticket .. ' ' .. fence .. ' '
        .. streak .. ' ' .. began .. ' ' .. lock)
      if type(reached) == 'number' then
        if tonumber(lease) < longest_sleep then redis.pcall(verb, channel, lease) end
        if not successor or owner == string.match(successor, '^[^ ]+') then return 4 end
        -- Needs waiters
        local registered, its_ticket = pcall(register, waiters, successor)
        return {4, '', registered and its_ticket or 0}
      end
      redis.pcall('HDEL', lock, owner)
      others = false -- a message to another client would fail too
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
