-- A turn is the time in which the head of the queue may take a free fair lock. The key has
-- "<time> <score> <owner>": when the turn ends, and its owner. If the turn was shortened, because
-- others of the head's client did not come, its length in milliseconds follows. The score tells
-- this queue entry from an earlier entry of the same owner. A head that listens but does not come
-- has lost its server or hangs. A head without a listener has just queued, or is gone.
-- Needs attempt, announce, clock, queue

-- nudge notifies one waiter of a lease or turn that began after the waiter had asked. The message
-- says after how many milliseconds to ask again. If all waiters ask by then anyway, nudge does
-- nothing. nudge notifies the head or, if the head has no listener, one of the last waiters to
-- come, because these are most likely alive.
local function nudge(milliseconds, deaf)
  if milliseconds < 0 or milliseconds >= longest_sleep then return end
  local after = whole(math.max(milliseconds, 2))
  for i = deaf and -1 or 0, -10, -1 do
    local waiter = redis.call('LINDEX', queue, i)
    if not waiter then return end
    local _, heard = announce(verb, channel .. ':' .. waiter, after)
    -- If PUBLISH does not count all listeners, the first waiter may have received the message.
    if heard > 0 or deaf_timeout == head_timeout then return end
  end
end

-- inherits reports whether a head continues the turn of an owner that silently left the queue. The
-- owner must be of the head's client, or of any client if the head has no listener. Otherwise a
-- dead client would get a turn for each budget.
local function inherits(whose, client, deaf)
  local before = string.match(whose, ' (.*)$')
  return (deaf or string.match(before, '^(.*):') == client)
    and not redis.call('ZSCORE', scores, before)
end

local soon = 10 -- milliseconds until the next script continues where this script has stopped

-- offer notifies the head of the queue that the lock is free, unless the head is the owner that
-- asks, and drops heads that let their turn pass. It returns the server's error for the message, or
-- '', and how many milliseconds are left of the head's turn, 0 if the asking owner may take the
-- lock.
local function offer(time, asking)
  local passed, missed, refusal = {}, 0, '' -- the dropped heads, and their number
  -- Of the last dropped head: whether it had no listener; its client; the time that others of that
  -- client get.
  local silent, hung, hurry = false, nil, deaf_timeout
  if unswept then return refusal, soon end
  while true do
    local head = redis.call('LINDEX', queue, missed)
    if not head or head == asking then
      if missed > 0 then drop(passed, time) end
      return refusal, 0
    elseif missed == max_swept then
      drop(passed, time)
      return refusal, soon
    end
    local heard
    refusal, heard = announce(verb, channel .. ':' .. head, '0')
    -- Where PUBLISH does not count all listeners, both times are the same.
    local deaf = heard == 0 and refusal == '' and deaf_timeout < head_timeout
    local client = string.match(head, '^(.*):') or head
    local given = deaf and deaf_timeout or client == hung and hurry or head_timeout
    local stay = (redis.call('ZSCORE', scores, head) or '') .. ' ' .. head
    local last = redis.call('GET', turn) or ''
    local ends, whose, hurried = string.match(last, '^(%d+) (%S+ %S+) ?(%d*)$')
    local left = whose and (whose == stay or missed == 0 and inherits(whose, client, deaf))
      and tonumber(ends) - time
    local over = left and left <= 0
    local waits = (redis.call('ZSCORE', budgets, head) or math.huge) - time -- then it is dropped
    if left and not over and left <= given then return refusal, math.min(left, waits) end
    if not over and (left or not (silent and deaf)) then
      -- The head's turn begins; or the head had a listener when its turn began, and has none now.
      -- If there is no memory for the key, the head keeps its turn for as long as its score allows.
      if missed > 0 then
        drop(passed, time)
        stay = (redis.call('ZSCORE', scores, head) or '') .. ' ' .. head
      end
      if client == hung then stay = stay .. ' ' .. whole(hurry) end
      attempt('SET', turn, whole(time + given) .. ' ' .. stay, 'PX', whole(2 * head_timeout))
      given = math.min(given, waits)
      if deaf then nudge(given, true) end
      return refusal, given
    end
    -- Owners behind this head without a listener had the same time to come, because a dead process
    -- leaves many such owners. Others of a client that listens but does not come get a message, and
    -- ever less time.
    silent, hung = deaf, client
    local before = left and tonumber(hurried)
    hurry = before and math.max(math.floor(before / 4), 100) or deaf_timeout
    passed[head], missed = true, missed + 1
  end
end
