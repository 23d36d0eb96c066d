-- The queue of a fair lock: a list of owners, head first, and a sorted set of owner -> score. The score is the time, in
-- milliseconds since the epoch, from which on its owner counts as gone once it is the head. It is that of the one before
-- plus the owner's own window, and Redisson relies on that: one that leaves the queue takes its window off all behind it.
--
-- Two more keys only this library knows. One is a sorted set of owner -> when its budget ends: the time at which its caller
-- stops waiting. A place is dropped then, whether its owner still lives to say so or not; an owner without a limit has none.
--
-- The other says until when the head may take its turn: "<time> <score> <owner>", and the milliseconds it was given if they
-- are few because others of its client did not come. The score tells this stay in the queue from an earlier one: owners of
-- Redisson come again under the same name. A head that listens and does not come has lost its server or its mind; one that
-- nobody listens for has just queued, or is gone.
--
-- All scripts of a fair lock begin with these keys and arguments.
local lock, queue, scores, turn, budgets = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local channel, verb = ARGV[1], ARGV[2]
local heeded, unheard, longest_nap = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

-- places: returns the owners in the queue, head first, and the scores of those that have one.
local function places()
  local score_of = {}
  local listed = redis.call('ZRANGE', scores, 0, -1, 'WITHSCORES')
  for i = 1, #listed, 2 do
    score_of[listed[i]] = tonumber(listed[i + 1])
  end
  return redis.call('LRANGE', queue, 0, -1), score_of
end

-- in_parts: calls a function with any number of values, which Lua could not pass at once.
local function in_parts(values, call)
  for i = 1, #values, 1000 do
    call(unpack(values, i, math.min(i + 999, #values)))
  end
end

-- score_all: sets scores, given as score, owner, score, owner, ...
local function score_all(values)
  in_parts(values, function(...) redis.call('ZADD', scores, ...) end)
end

-- pop: takes the head out of the queue, and closes the gap that it leaves. base is as for drop. It is what each hand-over does,
-- and its length is that of the queue, so nothing is read or made twice.
local function pop(base)
  local head = redis.call('LPOP', queue)
  local closed = (redis.call('ZSCORE', scores, head) or 0) - base
  redis.call('ZREM', scores, head)
  redis.call('ZREM', budgets, head)
  redis.call('DEL', turn)
  if closed > 0 then
    local listed = redis.call('ZRANGE', scores, 0, -1, 'WITHSCORES')
    for i = 1, #listed, 2 do
      listed[i], listed[i + 1] = listed[i + 1] - closed, listed[i]
    end
    score_all(listed)
  end
end

-- drop: takes the owners that leave out of the queue, wherever they are, and closes the gaps that they leave between scores.
-- base is what the score of a head counts from. One pass over the queue, however many leave.
local function drop(leaving, base)
  local owners, score_of = places()
  local kept, gone, moved, closed = {}, {}, {}, 0
  for _, owner in ipairs(owners) do
    local score = score_of[owner] or 0
    if leaving[owner] then
      gone[#gone + 1] = owner
      closed = closed + math.max(score - base, 0)
    else
      kept[#kept + 1] = owner
      if score > 0 and closed > 0 then
        moved[#moved + 1], moved[#moved + 2] = whole(score - closed), owner
      end
    end
    base = math.max(base, score)
  end
  local names = {}
  for owner in pairs(leaving) do
    names[#names + 1] = owner
  end
  -- First, because a server that is out of memory refuses no write after this one.
  in_parts(names, function(...)
    redis.call('ZREM', scores, ...)
    redis.call('ZREM', budgets, ...)
  end)
  score_all(moved)
  if #gone > 4 then
    redis.call('DEL', queue)
    in_parts(kept, function(...) redis.call('RPUSH', queue, ...) end)
  else
    for _, owner in ipairs(gone) do
      redis.call('LREM', queue, 0, owner)
    end
  end
  if #kept == 0 then
    redis.call('DEL', turn)
  end
end

-- sweep: drops the owners that leave, those whose budget is over, and heads that have no score or one that has passed. left
-- is the PTTL of the lock. It returns whether the queue has another head now.
local function sweep(leaving, time, left)
  local head = redis.call('LINDEX', queue, 0)
  if not head then
    return false
  end
  for _, owner in ipairs(redis.call('ZRANGE', budgets, '-inf', whole(time), 'BYSCORE')) do
    leaving[owner] = true
  end
  local first = head
  if next(leaving) then
    drop(leaving, time + math.max(left, 0))
    first = redis.call('LINDEX', queue, 0)
  end
  while first do
    local score = redis.call('ZSCORE', scores, first)
    -- Windows of others may have been taken off the score of one that is waiting still.
    if score and (tonumber(score) > time or redis.call('ZSCORE', budgets, first)) then
      break
    end
    redis.call('LPOP', queue)
    redis.call('ZREM', scores, first)
    first = redis.call('LINDEX', queue, 0)
  end
  if not first then
    redis.call('DEL', turn)
  end
  return first ~= head
end

-- advise: has somebody who waits look again in so many milliseconds, unless all do so anyway: nobody else tells them of a lease,
-- or a turn, that began after they asked. That is the head, or one of the last to come if nobody listens for the head: those
-- most likely live.
local function advise(milliseconds, deaf)
  if milliseconds < 0 or milliseconds >= longest_nap then
    return
  end
  for i = deaf and -1 or 0, -10, -1 do
    local waiter = redis.call('LINDEX', queue, i)
    -- Where PUBLISH does not count everybody, the first may well have heard it.
    if not waiter or announce(verb, channel .. ':' .. waiter, whole(math.max(milliseconds, 2))) > 0 or unheard == heeded then
      return
    end
  end
end

-- offer: the lock is free. Tells the head of the queue so, unless it is the one who asks, and drops one that let its turn
-- pass, for the next. It returns for how many milliseconds the head has its turn still, 0 when whoever asks may go; and
-- the server's refusal to tell the head, if any.
local function offer(time, asking)
  local passed, missed, silent, hung, refusal = {}, 0, false, nil, ''
  local hurry = unheard
  while true do
    local head = redis.call('LINDEX', queue, missed)
    if not head or head == asking then
      if missed > 0 then
        drop(passed, time)
      end
      return 0, refusal
    end
    local listeners
    listeners, refusal = announce(verb, channel .. ':' .. head, '0')
    -- PUBLISH does not always count everybody: then both times are the same.
    local deaf = listeners == 0 and refusal == '' and unheard < heeded
    local client = string.match(head, '^(.*):') or head
    local given = heeded
    if deaf then
      given = unheard
    elseif client == hung then
      given = hurry
    end
    given = math.min(given, (redis.call('ZSCORE', budgets, head) or math.huge) - time)
    local stay = (redis.call('ZSCORE', scores, head) or '') .. ' ' .. head
    local ends, whose, hurried = string.match(redis.call('GET', turn) or '', '^(%d+) (%S+ %S+) ?(%d*)$')
    local left = whose == stay and tonumber(ends) - time
    local over = left and left <= 0
    if left and not over and left <= given then
      return left, refusal
    end
    if not over and (left or not (silent and deaf)) then
      -- Its turn begins, or it was heard then and is not any more. Without memory for this the head keeps its turn for as
      -- long as its score allows.
      if missed > 0 then
        drop(passed, time)
        stay = (redis.call('ZSCORE', scores, head) or '') .. ' ' .. head
      end
      if client == hung then
        stay = stay .. ' ' .. whole(hurry)
      end
      redis.pcall('SET', turn, whole(time + given) .. ' ' .. stay, 'PX', whole(2 * heeded))
      if deaf then
        advise(given, true)
      end
      return given, refusal
    end
    -- Those behind it that nobody listens for have had the same time to come: a process that died leaves many. Those of a
    -- client that listens and does not come, but hangs, are told all the same, and get less time, each less than the one
    -- before.
    silent, hung = deaf, client
    hurry = left and tonumber(hurried) and math.max(math.floor(tonumber(hurried) / 4), 100) or unheard
    passed[head], missed = true, missed + 1
  end
end
