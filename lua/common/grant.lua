-- Needs attempt, clock, waiters, advice
-- lease_of returns the lease of a registration, in milliseconds.
local function lease_of(registration)
  return string.match(registration, ' (%d+) %a$')
end

-- grant gives a free lock to the owner of a registration. It returns the number of the acquisition,
-- 0 for a plain lock. It returns nil if the server refuses, as a cluster does while a slot moves:
-- the lock is still free then, and all waiters must be told.
local function grant(lock, token, registration)
  local owner, lease, kind = string.match(registration, '^(%S+) (%d+) (%a)$')
  if not owner then return nil end -- not written by this library
  local fence = 0
  if kind == 'f' then
    -- Before the lock is granted: an unused number does no harm.
    fence = token and attempt('INCR', token) and attempt('GET', token)
    if not fence then return nil end
  end
  if not attempt('HSET', lock, owner, 1) or not attempt('PEXPIRE', lock, lease) then
    attempt('HDEL', lock, owner)
    return nil
  end
  return fence
end

-- listeners returns how many clients listen for releases but do not register when they wait, like
-- Redisson's, and how many listen on another channel, mine; or nil if the server refuses. A client
-- that may register listens on present too. If it waits unregistered it also listens on :announce.
-- classic is how many other clients listen on the classic channel, see classic.lua.
local function listeners(verb, channel, present, mine, classic)
  local count = verb == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local heard = attempt('PUBSUB', count, channel, present, present .. ':announce', mine)
  if not heard then return nil end
  local others = tonumber(heard[2]) - tonumber(heard[4]) + tonumber(heard[6]) + classic
  return others, tonumber(heard[8])
end

-- grant_oldest gives a free lock to the waiter whose registration was popped, or to one behind it,
-- and tells its client. It returns the owner; nil if there is none; or false if the server refuses
-- or a client listens that does not register: all waiters must be told then. It skips waiters whose
-- client does not listen, and the owner that leaves. If the owner that leaves is of the client that
-- is told, the ticket in the message has a plus sign, which belongs to any number.
local function grant_oldest(popped, lock, waiters, token, leaving, verb, channel, present, classic,
  streak)
  for i = 1, 100 do
    if i > 1 then popped = attempt('ZPOPMIN', waiters) end
    if not popped then return false end
    if not popped[1] then return nil end
    local registration, score = popped[1], popped[2]
    local owner, client = string.match(registration, '^(([^%s:]*)%S*)')
    if owner == '' then
      return false -- not written by this library
    elseif owner ~= leaving then
      -- Listeners are counted before anything is published: a listener on a replica, such as a
      -- replaced master, hears what is published here but is not counted.
      local mine = present .. ':' .. client
      local others, heard = listeners(verb, channel, present, mine, classic)
      if others ~= 0 then
        attempt('ZADD', waiters, score, registration)
        local alone = (attempt('PTTL', waiters) or -1) < 0
        if alone then attempt('PEXPIRE', waiters, lasting) end
        return false
      elseif heard > 0 or not lease_of(registration) then
        local fence = grant(lock, token, registration)
        if not fence then return false end
        local here = string.match(leaving, '^[^:]*') == client and '+' or ''
        local message = {owner, here .. whole(tonumber(score)), fence, streak, lock}
        if attempt(verb, mine, table.concat(message, ' ')) then
          advise(verb, channel, lease_of(registration))
          return owner
        end
        attempt('HDEL', lock, owner)
        return nil -- no other client could be told either
      end
    end
  end
  return false
end
