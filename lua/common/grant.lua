-- Needs attempt, clock, waiters, advice
-- lease_of returns the lease of a registration, in milliseconds.
local function lease_of(registration)
  return string.match(registration, ' (%d+) %a$')
end

-- grant gives a free lock to the owner of a registration. It returns the number of the acquisition,
-- 0 for a plain lock; or nil if the server refuses, as a cluster does while a slot moves: then the
-- lock is still free, and all must be told.
local function grant(lock, token, registration)
  local owner, lease, kind = string.match(registration, '^(%S+) (%d+) (%a)$')
  if not owner then return nil end -- somebody else wrote it
  local fence = 0
  if kind == 'f' then
    -- Before the lock is granted: a number too many does no harm.
    fence = token and attempt('INCR', token) and attempt('GET', token)
    if not fence then return nil end
  end
  if not attempt('HSET', lock, owner, 1) or not attempt('PEXPIRE', lock, lease) then
    attempt('HDEL', lock, owner)
    return nil
  end
  return fence
end

-- listeners returns how many hear of a release and register nothing when they wait, such as
-- Redisson's, and how many listen on another channel, mine; or nil if the server does not tell.
-- Whoever may register listens on present as well, except those who listen on the third channel.
local function listeners(verb, channel, present, mine)
  local count = verb == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local heard = attempt('PUBSUB', count, channel, present, present .. ':announce', mine)
  if not heard then return nil end
  return tonumber(heard[2]) - tonumber(heard[4]) + tonumber(heard[6]), tonumber(heard[8])
end

-- grant_oldest gives a free lock to the waiter whose registration was popped, or to one behind it,
-- and tells its client. It returns the owner; nil if there is none; false if the server refuses or
-- somebody listens who registers nothing: then all must be told. It passes over waiters that nobody
-- listens for, and over the owner that leaves.
local function grant_oldest(popped, lock, waiters, token, leaving, verb, channel, present, streak)
  for i = 1, 100 do
    if i > 1 then popped = attempt('ZPOPMIN', waiters) end
    if not popped then return false end
    if not popped[1] then return nil end
    local registration, score = popped[1], popped[2]
    local owner, client = string.match(registration, '^(([^%s:]*)%S*)')
    if owner == '' then
      return false -- somebody else wrote it
    elseif owner ~= leaving then
      -- Counted before anything is published: a listener on a replica, such as a replaced master,
      -- hears what is published here, and is not counted.
      local mine = present .. ':' .. client
      local others, heard = listeners(verb, channel, present, mine)
      if others ~= 0 then
        attempt('ZADD', waiters, score, registration)
        local alone = (attempt('PTTL', waiters) or -1) < 0
        if alone then attempt('PEXPIRE', waiters, lasting) end
        return false
      elseif heard > 0 or not lease_of(registration) then
        local fence = grant(lock, token, registration)
        if not fence then return false end
        local message = {owner, whole(tonumber(score)), fence, streak, lock}
        if attempt(verb, mine, table.concat(message, ' ')) then
          advise(verb, channel, lease_of(registration))
          return owner
        end
        attempt('HDEL', lock, owner)
        return nil -- nobody else can be told either
      end
    end
  end
  return false
end
