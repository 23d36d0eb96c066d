-- Turns: which of the queue of a fair lock may take it while it is free, and for how long. The key
-- has "<time> <score> <owner>": until when the head may take the lock; and the milliseconds it was
-- given, if those are few because others of its client did not come. The score tells this stay in
-- the queue from an earlier one under the same name. A head that listens and does not come has lost
-- its server or hangs; one that nobody listens for has just queued, or is gone.
-- Needs attempt, announce, clock, queue

-- nudge tells one waiter to look again after so many milliseconds, unless all look by then anyway:
-- of a lease or a turn that began after they asked. That is the head; or, if nobody listens for it,
-- one of the last to come, which are most likely alive.
local function nudge(milliseconds, deaf)
  if milliseconds < 0 or milliseconds >= longest_nap then return end
  local after = whole(math.max(milliseconds, 2))
  for i = deaf and -1 or 0, -10, -1 do
    local waiter = redis.call('LINDEX', queue, i)
    if not waiter then return end
    local _, heard = announce(verb, channel .. ':' .. waiter, after)
    -- Where PUBLISH does not count everybody, the first may well have heard it.
    if heard > 0 or unheard == heeded then return end
  end
end

-- inherits returns whether a head goes on with the turn of one that left the queue without a word:
-- of its own client; of any, if nobody listens for it. Else a dead client had one turn per budget.
local function inherits(whose, client, deaf)
  local before = string.match(whose, ' (.*)$')
  return (deaf or string.match(before, '^(.*):') == client)
    and not redis.call('ZSCORE', scores, before)
end

-- offer tells the head of the queue that the lock is free, unless it is the one that asks, and
-- drops heads that let their turn pass. It returns the server's refusal to tell the head, or '',
-- and how many milliseconds are left of the head's turn, 0 if the asking owner may take the lock.
local function offer(time, asking)
  local passed, missed, refusal = {}, 0, '' -- those dropped, and their number
  -- Of the last one dropped: nobody listened; its client; how long others of that client get.
  local silent, hung, hurry = false, nil, unheard
  while true do
    local head = redis.call('LINDEX', queue, missed)
    if not head or head == asking then
      if missed > 0 then drop(passed, time) end
      return refusal, 0
    end
    local heard
    refusal, heard = announce(verb, channel .. ':' .. head, '0')
    -- PUBLISH does not always count everybody: then both times are the same.
    local deaf = heard == 0 and refusal == '' and unheard < heeded
    local client = string.match(head, '^(.*):') or head
    local given = deaf and unheard or client == hung and hurry or heeded
    local stay = (redis.call('ZSCORE', scores, head) or '') .. ' ' .. head
    local last = redis.call('GET', turn) or ''
    local ends, whose, hurried = string.match(last, '^(%d+) (%S+ %S+) ?(%d*)$')
    local left = whose and (whose == stay or missed == 0 and inherits(whose, client, deaf))
      and tonumber(ends) - time
    local over = left and left <= 0
    local waits = (redis.call('ZSCORE', budgets, head) or math.huge) - time -- then it is dropped
    if left and not over and left <= given then return refusal, math.min(left, waits) end
    if not over and (left or not (silent and deaf)) then
      -- Its turn begins; or it was heard then, and is not any more. Without memory for this the
      -- head keeps its turn for as long as its score allows.
      if missed > 0 then
        drop(passed, time)
        stay = (redis.call('ZSCORE', scores, head) or '') .. ' ' .. head
      end
      if client == hung then stay = stay .. ' ' .. whole(hurry) end
      attempt('SET', turn, whole(time + given) .. ' ' .. stay, 'PX', whole(2 * heeded))
      given = math.min(given, waits)
      if deaf then nudge(given, true) end
      return refusal, given
    end
    -- Those behind it that nobody listens for had the same time to come: a process that died leaves
    -- many. Others of a client that listens and does not come are told, and get ever less time.
    silent, hung = deaf, client
    local before = left and tonumber(hurried)
    hurry = before and math.max(math.floor(before / 4), 100) or unheard
    passed[head], missed = true, missed + 1
  end
end
