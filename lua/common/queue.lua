-- The queue of a fair lock: a list of owners, head first, and a sorted set of owner -> score. The score is the time, in
-- milliseconds since the epoch, from which on its owner counts as gone once it is the head. It is that of the one before
-- plus the owner's own window, and Redisson relies on that: who leaves the queue takes its window off all behind it.
--
-- A third key, which only this library knows, says until when the head may take its turn: "<time> <score> <owner>", and
-- the milliseconds it was given if they are few because others of its client did not come. The score tells this stay in the
-- queue from an earlier one: owners of Redisson come again under the same name. A head that listens and does not come has
-- lost its server or its mind; one that nobody listens for has just queued, or is gone.

-- shift: adds milliseconds to the scores of the owners, which all have one.
local function shift(scores, owners, milliseconds)
  local by = whole(milliseconds)
  for _, owner in ipairs(owners) do
    redis.call('ZINCRBY', scores, by, owner)
  end
end

-- behind: those with a score who are queued behind the owner, and the one before it; nil if it is not queued.
local function behind(queue, scores, owner)
  local after, before, found = {}, false, false
  for _, queued in ipairs(redis.call('LRANGE', queue, 0, -1)) do
    if found then
      if redis.call('ZSCORE', scores, queued) then
        after[#after + 1] = queued
      end
    elseif queued == owner then
      found = true
    else
      before = queued
    end
  end
  if not found then
    return nil
  end
  return after, before
end

-- withdraw: takes an owner out of the queue, wherever it is. It returns whether it was in there.
local function withdraw(queue, scores, owner, window)
  if not redis.call('ZSCORE', scores, owner) then
    return false
  end
  shift(scores, behind(queue, scores, owner) or {}, -window)
  redis.call('LREM', queue, 0, owner)
  redis.call('ZREM', scores, owner)
  return true
end

-- purge: drops heads that have no score, or one that has passed.
local function purge(queue, scores, time)
  while true do
    local head = redis.call('LINDEX', queue, 0)
    if not head then
      return
    end
    local score = redis.call('ZSCORE', scores, head)
    if score and tonumber(score) > time then
      return
    end
    redis.call('LPOP', queue)
    redis.call('ZREM', scores, head)
  end
end

-- offer: the lock is free. Tells the head of the queue so, unless it is the one who asks, and drops one that let its turn
-- pass, for the next. It returns for how many milliseconds the head has its turn still, 0 when whoever asks may go; and
-- the server's refusal to tell the head, if any.
local function offer(queue, scores, turn, time, asking, verb, channel, heeded, unheard)
  local silent, hung, refusal = false, nil, ''
  local hurry = unheard
  while true do
    local head = redis.call('LINDEX', queue, 0)
    if not head or head == asking then
      return 0, refusal
    end
    local listeners
    listeners, refusal = announce(verb, channel .. ':' .. head, '0')
    -- PUBLISH does not always count everybody: then both times are the same.
    local deaf = listeners == 0 and refusal == '' and unheard < heeded
    local client = string.match(head, '^(.*):') or head
    local patience = heeded
    if deaf then
      patience = unheard
    elseif client == hung then
      patience = hurry
    end
    local stay = (redis.call('ZSCORE', scores, head) or '') .. ' ' .. head
    local ends, whose, hurried = string.match(redis.call('GET', turn) or '', '^(%d+) (%S+ %S+) ?(%d*)$')
    local left = whose == stay and tonumber(ends) - time
    local missed = left and left <= 0
    if left and not missed and left <= patience then
      return left, refusal
    end
    if not missed and (left or not (silent and deaf)) then
      -- Its turn begins, or it was heard then and is not any more. Without memory for this the head keeps its turn for as
      -- long as its score allows.
      if client == hung then
        stay = stay .. ' ' .. whole(hurry)
      end
      redis.pcall('SET', turn, whole(time + patience) .. ' ' .. stay, 'PX', whole(2 * heeded))
      return patience, refusal
    end
    -- Those behind it that nobody listens for have had the same time to come: a process that died leaves many. Those of a
    -- client that listens and does not come, but hangs, are told all the same, and get less time, each less than the one
    -- before.
    silent, hung = deaf, client
    hurry = left and tonumber(hurried) and math.max(math.floor(tonumber(hurried) / 4), 100) or unheard
    redis.call('LPOP', queue)
    redis.call('ZREM', scores, head)
  end
end
