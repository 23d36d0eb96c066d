-- Passing on: a lock that is released is given to a waiter. Needs attempt, clock, waiters and advice.

-- give: lets the owner of a place have a lock that is free. It returns the number of the acquisition, 0 for a plain lock;
-- or nil if the server refuses, and then the lock is free still. It never fails: a cluster whose slot moves refuses whatever
-- is about a key that is not there, and all are to be told then.
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
    attempt('HDEL', lock, owner)
    return nil
  end
  return fence
end

-- listeners: how many hear of the release of a lock and have no place when they wait for it, such as those of Redisson; and how
-- many listen on mine, another channel. It returns nil if the server does not tell. Whoever may have a place listens on present
-- as well, except who listens on the third channel.
local function listeners(verb, channel, present, mine)
  local count = verb == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local heard = attempt('PUBSUB', count, channel, present, present .. ':announce', mine)
  if not heard then
    return nil
  end
  return tonumber(heard[2]) - tonumber(heard[4]) + tonumber(heard[6]), tonumber(heard[8])
end

-- pass_on: gives a lock that is free to the waiter with the oldest place, which has been popped, or one behind it, and tells
-- its client. It returns the owner; nil if there is none, and false if the server refuses, or if somebody listens who has no
-- place when it waits, such as Redisson: then all are to be told. Those that nobody listens for any more are passed over, and
-- so is the one that leaves: it got the lock without its place, and would get it back.
local function pass_on(popped, lock, waiters, token, leaving, verb, channel, present, turns, began)
  for i = 1, 100 do
    if i > 1 then
      popped = attempt('ZPOPMIN', waiters)
    end
    if not popped then
      return false
    elseif not popped[1] then
      return nil
    end
    local owner, client = string.match(popped[1], '^(([^%s:]*)%S*)')
    if owner == '' then
      return false -- somebody else wrote it
    elseif owner ~= leaving then
      -- Counted before anything is said, because who listens on a replica, such as a master that was replaced, hears what is
      -- published here, and is not counted.
      local mine = present .. ':' .. client
      local others, heard = listeners(verb, channel, present, mine)
      if others ~= 0 then
        attempt('ZADD', waiters, popped[2], popped[1])
        if (attempt('PTTL', waiters) or -1) < 0 then -- it was the only one
          attempt('PEXPIRE', waiters, keep)
        end
        return false
      elseif heard > 0 or not string.match(popped[1], ' %d+ %a$') then
        local fence = give(lock, token, popped[1])
        if not fence then
          return false
        end
        local ticket = whole(tonumber(popped[2]))
        if attempt(verb, mine, table.concat({owner, ticket, fence, turns, whole(began), lock}, ' ')) then
          advise(verb, channel, string.match(popped[1], ' (%d+) %a$'))
          return owner
        end
        attempt('HDEL', lock, owner)
        return nil -- nobody else can be told either
      end
    end
  end
  return false
end
