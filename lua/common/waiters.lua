-- Waiters is a sorted set of registrations. A release can hand the lock over to a registered owner.
-- A registration is "<owner> <lease in milliseconds> <kind>": p = plain, f = fenced. Its score is
-- its ticket: the time in microseconds, and higher than all other tickets. A registration gets the
-- lock once, so the ticket in a grant message says which reply to a request it follows.
-- Needs attempt, clock

local lasting = 15000 -- milliseconds without a request, three times the longest sleep of a waiter

-- register adds a registration if the set does not have it yet, and returns its ticket.
local function register(waiters, registration)
  -- A server that is out of memory rejects only the first write, but never PEXPIRE, so owners can
  -- still wait.
  local known = redis.call('PEXPIRE', waiters, lasting) == 1
  local ticket = known and redis.call('ZSCORE', waiters, registration)
  if not ticket then
    local time = redis.call('TIME')
    ticket = tonumber(time[1]) * 1000000 + tonumber(time[2])
    local last = known and attempt('ZRANGE', waiters, -1, -1, 'WITHSCORES')
    local latest = last and tonumber(last[2] or 0) or 0
    if latest < 9007199254740992 then -- higher numbers are not tickets
      ticket = math.max(ticket, latest + 1) -- the clock may have been set back
    end
    redis.call('ZADD', waiters, whole(ticket), registration)
    if not known then redis.call('PEXPIRE', waiters, lasting) end
  end
  return whole(tonumber(ticket))
end
