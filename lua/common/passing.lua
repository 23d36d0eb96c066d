-- Passing on: a lock that is released is given to a waiter. Needs attempt.

-- A lock is passed on 16 times at least and for 100 ms, or 4 times and for a second, before it is free for once. For how many
-- milliseconds it is known that it was passed on: sections may take long.
local run_kept = 600000

-- give: lets the owner of a place have a lock that is free. It returns the number of the acquisition, 0 for a plain lock;
-- or nil if the server refuses, and then the lock is free still.
local function give(lock, token, place)
  local owner, lease, kind = string.match(place, '^(%S+) (%d+) (%a)$')
  if not owner then
    return nil -- somebody else wrote it
  end
  local fence = 0
  if kind == 'f' then
    -- Before the lock is given: a number too many does no harm.
    fence = token and attempt('INCR', token) and attempt('GET', token)
    if not fence then
      return nil
    end
  end
  if not attempt('HSET', lock, owner, 1) or not attempt('PEXPIRE', lock, lease) then
    redis.call('HDEL', lock, owner)
    return nil
  end
  return fence
end

-- listeners: how many hear of the release of a lock and have no place when they wait for it, such as those of Redisson; nil
-- if the server does not tell. Whoever may have a place listens on the second channel as well, except who listens on the third.
local function listeners(verb, channel, present)
  local heard = attempt('PUBSUB', verb == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', channel, present, present .. ':announce')
  return heard and tonumber(heard[2]) - tonumber(heard[4]) + tonumber(heard[6])
end

-- pass_on: gives a lock that is free to the owner that waits longest, and tells its client. It returns the owner; nil if
-- there is none, and false if the server refuses. Those that nobody listens for any more are passed over, and so is the one
-- that leaves: it got the lock without its place, and would get it back.
local function pass_on(lock, waiters, token, verb, present, leaving)
  for _ = 1, 100 do
    local first = attempt('ZPOPMIN', waiters)
    if not first then
      return false
    elseif not first[1] then
      return nil
    end
    local owner = string.match(first[1], '^%S+')
    if not owner then
      return false -- somebody else wrote it
    elseif owner ~= leaving then
      local channel = present .. ':' .. string.match(owner, '^[^:]*')
      -- Counted before anything is said, because who listens on a replica, such as a master that was replaced, hears what is
      -- published here, and is not counted.
      local heard = attempt('PUBSUB', verb == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', channel)
      if not heard then
        return false
      elseif tonumber(heard[2]) > 0 or not string.match(first[1], ' %d+ %a$') then
        local fence = give(lock, token, first[1])
        if not fence then
          return false
        end
        local message = owner .. ' ' .. string.format('%.0f', tonumber(first[2])) .. ' ' .. fence .. ' ' .. lock
        if attempt(verb, channel, message) then
          return owner
        end
        redis.call('HDEL', lock, owner)
        return nil -- nobody else can be told either
      end
    end
  end
  return false
end

-- long_closed: counts that a lock is passed on, which has not been free since the run began, and tells that it should be for
-- once, and announced: there may be somebody who waits whom we cannot see, such as one that asks again and again.
local function long_closed(run)
  local turns = attempt('INCR', run)
  if turns == 1 then
    return not attempt('PEXPIRE', run, run_kept)
  elseif turns and turns % 4 ~= 0 then
    return false
  end
  local left = turns and attempt('PTTL', run)
  return not left or run_kept - left > (turns % 16 == 0 and 100 or 1000)
end
