-- Needs attempt, clock, waiters, advice
-- lease_of returns the lease of a registration, in milliseconds.
local function lease_of(registration)
  return string.match(registration, ' (%d+) %a$')
end

-- grant gives a free lock to the owner of a registration. token is the key of the fence. grant
-- returns the fence, 0 for a plain lock, or nil if the server rejects a command, as a cluster does
-- while a slot moves. The lock is then still free, and the caller must announce the lock.
local function grant(lock, token, registration)
  local owner, lease, kind = string.match(registration, '^(%S+) (%d+) (%a)$')
  if not owner then return nil end -- not written by holdfast
  local fence = 0
  if kind == 'f' then
    -- INCR comes before the lock is granted, because an unused number does no harm.
    fence = token and attempt('INCR', token) and attempt('GET', token)
    if not fence then return nil end
  end
  if not attempt('HSET', lock, owner, 1) or not attempt('PEXPIRE', lock, lease) then
    attempt('HDEL', lock, owner)
    return nil
  end
  return fence
end

-- listeners counts the clients that listen for releases but do not register when they wait, like
-- clients of Redisson, and the clients that listen on another channel, mine. It returns nil if the
-- server rejects the command. A client that may register also listens on present, and while it
-- waits without a registration on :announce as well. classic is how many other clients listen on
-- the classic channel, see classic.lua.
local function listeners(verb, channel, present, mine, classic)
  local count = verb == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local heard = attempt('PUBSUB', count, channel, present, present .. ':announce', mine)
  if not heard then return nil end
  local others = tonumber(heard[2]) - tonumber(heard[4]) + tonumber(heard[6]) + classic
  return others, tonumber(heard[8])
end

-- grant_oldest gives a free lock to the waiter of the popped registration, or to a waiter behind
-- it, and notifies the waiter's client. It skips the leaving owner, and waiters whose client does
-- not listen. It returns the new owner, or nil if there is none. It returns false if the server
-- rejects a command, or if a client listens that does not register. The caller must then announce
-- the lock. If the leaving owner belongs to the notified client, the ticket in the message has a
-- plus sign, which every parser of numbers accepts.
local function grant_oldest(popped, lock, waiters, token, leaving, verb, channel, present, classic,
  streak)
  for i = 1, 100 do
    if i > 1 then popped = attempt('ZPOPMIN', waiters) end
    if not popped then return false end
    if not popped[1] then return nil end
    local registration, score = popped[1], popped[2]
    local owner, client = string.match(registration, '^(([^%s:]*)%S*)')
    if owner == '' then
      return false -- not written by holdfast
    elseif owner ~= leaving then
      -- The script counts listeners before it publishes, because a listener on a replica, for
      -- example a demoted master, receives what this server publishes, but this server does not
      -- count it.
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
        return nil -- a message to another client would fail too
      end
    end
  end
  return false
end
