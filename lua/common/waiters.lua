-- Waiters is a sorted set of registrations of owners that are granted the lock when it is released.
-- A registration is "<owner> <lease in milliseconds> <kind>": p = plain, f = fenced. Its score is
-- its ticket: the time in microseconds, and more than all others. It is granted the lock once, so
-- the ticket in a grant message says which refusal it answers.
-- Needs attempt, clock

local lasting = 15000 -- milliseconds without a request: three times the longest sleep of a waiter

-- register adds a registration if it is not there yet, and returns its ticket.
local function register(waiters, registration)
  -- A server that is out of memory refuses only a first write, but not this one. So one can wait.
  local known = redis.call('PEXPIRE', waiters, lasting) == 1
  local ticket = known and redis.call('ZSCORE', waiters, registration)
  if not ticket then
    local time = redis.call('TIME')
    ticket = tonumber(time[1]) * 1000000 + tonumber(time[2])
    local last = known and attempt('ZRANGE', waiters, -1, -1, 'WITHSCORES')
    local latest = last and tonumber(last[2] or 0) or 0
    if latest < 9007199254740992 then -- or it is no ticket
      ticket = math.max(ticket, latest + 1) -- the clock may have been set back
    end
    redis.call('ZADD', waiters, whole(ticket), registration)
    if not known then redis.call('PEXPIRE', waiters, lasting) end
  end
  return whole(tonumber(ticket))
end
