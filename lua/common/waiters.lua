-- Waiters: owners that wait for a lock, of clients of this library, and are given it by whoever releases it. Each has a
-- place: the owner, its lease in milliseconds and the kind of its lock (p = plain, f = fenced), with blanks between. The
-- score of a place is its ticket, the time when it was taken in microseconds, and more than those of all others. A place is
-- given away once: so the ticket in a message tells which refusal has been answered with the lock.

-- For how many milliseconds places are kept when nobody asks: thrice the longest nap of a waiter.
local keep = 15000

-- enlist: gives a place to an owner that has none yet, and returns its ticket.
local function enlist(waiters, place)
  -- First, because a server that is out of memory refuses no write after this one: so one can wait there.
  local known = redis.call('PEXPIRE', waiters, keep) == 1
  local ticket = known and redis.call('ZSCORE', waiters, place)
  if not ticket then
    local time = redis.call('TIME')
    ticket = tonumber(time[1]) * 1000000 + tonumber(time[2])
    local last = known and attempt('ZRANGE', waiters, -1, -1, 'WITHSCORES')
    if last and last[2] then
      ticket = math.max(ticket, tonumber(last[2]) + 1) -- the clock may have been set back
    end
    redis.call('ZADD', waiters, string.format('%.0f', ticket), place)
    if not known then
      redis.call('PEXPIRE', waiters, keep)
    end
  end
  return string.format('%.0f', tonumber(ticket))
end
