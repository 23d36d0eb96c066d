-- Waiters is a sorted set of registrations. A release can hand the lock over to a registered owner.
-- A registration is "<owner> <lease in milliseconds> <kind>", and the kind is plain or fenced. The
-- text is longer than 64 bytes, because Redis searches a set of shorter texts from end to end. Its
-- score is its ticket: the time in microseconds, and higher than all other tickets. A registration
-- gets the lock once, so the ticket in a grant message says which reply to a request it follows.
-- Each request of a waiter for a hot lock runs these lines, so they need no functions of others.
-- They format a ticket with %.0f, because Lua's own format has an exponent.

local lasting = 15000 -- milliseconds without a request, three times the longest sleep of a waiter
local in_order = lasting + 10 -- the same, if no ticket is ahead of the clock

-- register adds a registration if the set does not have it yet, and returns its ticket.
local function register(waiters, registration)
  local left, time, ticket = redis.call('PTTL', waiters), nil, nil
  if left > lasting and left <= in_order then
    -- In the last 10 ms no ticket was ahead of the clock. So the time is the ticket. If the clock
    -- was set back since, then by less than 10 ms, which may only change the order of waiters.
    time = redis.call('TIME')
    ticket = time[1] .. string.sub('00000' .. time[2], -6)
    if redis.pcall('ZADD', waiters, 'NX', ticket, registration) == 1 then return ticket end
  end
  ticket = left ~= -2 and redis.call('ZSCORE', waiters, registration)
  if ticket then
    redis.call('PEXPIRE', waiters, lasting)
    return string.format('%.0f', tonumber(ticket))
  end
  -- A server that is out of memory rejects only the first write, but never PEXPIRE, so owners can
  -- still wait.
  redis.call('PEXPIRE', waiters, in_order)
  time = redis.call('TIME')
  ticket = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local last = left ~= -2 and redis.pcall('ZRANGE', waiters, -1, -1, 'WITHSCORES')
  local latest = last and tonumber(last[2] or 0) or 0
  if latest >= ticket and latest < 9007199254740992 then -- higher numbers are not tickets
    ticket = latest + 1 -- the clock was set back
    redis.call('PEXPIRE', waiters, lasting)
  end
  redis.call('ZADD', waiters, string.format('%.0f', ticket), registration)
  if left == -2 then redis.call('PEXPIRE', waiters, in_order) end
  return string.format('%.0f', ticket)
end
