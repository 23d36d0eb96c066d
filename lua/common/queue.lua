-- The queue of a fair lock is a list of owners, head first, and a sorted set of owner -> score. The
-- score of an owner is the score of the owner before it plus its own window. Once an owner is the
-- head, it counts as gone from the time in its score. Redisson relies on the scores, and a leaving
-- owner subtracts its window from all scores behind it. All scripts of a fair lock begin with these
-- keys and arguments:
-- KEYS[1]  lock: hash of owner -> hold count; its TTL is the lease
-- KEYS[2]  queue
-- KEYS[3]  scores, in milliseconds since the epoch
-- KEYS[4]  turn of the head, see turn.lua
-- KEYS[5]  budgets: sorted set of owner -> when it stops waiting and leaves the queue, even if it
--          is dead by then. An owner that waits without a limit has no budget
-- ARGV[1]  channel prefix of the waiters
-- ARGV[2]  PUBLISH, SPUBLISH or BOTH, see common/classic.lua
-- ARGV[3]  milliseconds that a head has to take its turn
-- ARGV[4]  milliseconds that a head without a listener has to take its turn
-- ARGV[5]  milliseconds after which every waiter asks again
-- Needs bounds, clock, unpack

local lock, queue, scores, turn, budgets = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local channel, verb, longest_sleep = ARGV[1], ARGV[2], tonumber(ARGV[5])
local head_timeout, deaf_timeout = tonumber(ARGV[3]), tonumber(ARGV[4])

-- Of a longer queue the scripts see only the first max_entries owners, and the lowest scores. Until
-- the scripts see the other owners, their scores stay higher than necessary.

-- queued returns the owners in the queue, head first, and the scores of those that have a score.
-- The third result reports whether these are all owners.
local function queued()
  local score_of, listed = {}, redis.call('ZRANGE', scores, 0, max_entries - 1, 'WITHSCORES')
  for i = 1, #listed, 2 do score_of[listed[i]] = tonumber(listed[i + 1]) end
  local owners = redis.call('LRANGE', queue, 0, max_entries - 1)
  if #listed == 2 * max_entries then
    for _, owner in ipairs(owners) do
      score_of[owner] = score_of[owner] or tonumber(redis.call('ZSCORE', scores, owner) or nil)
    end
  end
  return owners, score_of, #owners < max_entries
end

-- in_parts calls a function with any number of values in parts, because Lua limits their number.
local function in_parts(values, call)
  for i = 1, #values, 1000 do call(unpack(values, i, math.min(i + 999, #values))) end
end

-- score_all sets scores, given as score, owner, score, owner, ...
local function score_all(values)
  in_parts(values, function(...) redis.call('ZADD', scores, ...) end)
end

-- pop removes the head of the queue and closes the gap that the head leaves. For base see drop.
-- Every change of owner calls pop, in time proportional to the queue, so pop reads and builds
-- nothing twice.
local function pop(base)
  local head = redis.call('LPOP', queue)
  local closed = (redis.call('ZSCORE', scores, head) or 0) - base
  redis.call('ZREM', scores, head)
  redis.call('ZREM', budgets, head)
  redis.call('DEL', turn)
  if closed > 0 then
    local listed = redis.call('ZRANGE', scores, 0, max_entries - 1, 'WITHSCORES')
    for i = 1, #listed, 2 do
      listed[i], listed[i + 1] = listed[i + 1] - closed, listed[i]
    end
    score_all(listed)
  end
end

-- drop removes the leaving owners from the queue and closes the gaps between scores. base is the
-- time from which the score of a head counts. drop makes a single pass, however many owners leave.
local function drop(leaving, base)
  local owners, score_of, all = queued()
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
  for owner in pairs(leaving) do names[#names + 1] = owner end
  -- These commands come first, because a server that is out of memory rejects no write after them.
  in_parts(names, function(...)
    redis.call('ZREM', scores, ...)
    redis.call('ZREM', budgets, ...)
  end)
  score_all(moved)
  if #gone > 4 and all then
    redis.call('DEL', queue)
    in_parts(kept, function(...) redis.call('RPUSH', queue, ...) end)
  else
    for _, owner in ipairs(gone) do redis.call('LREM', queue, 1, owner) end
  end
  if #kept == 0 then redis.call('DEL', turn) end
end

local max_swept = 1000 -- how many heads, and owners whose budget has ended, one script drops
local unswept = false -- whether more of them are left

-- sweep drops the leaving owners, owners whose budget has ended, and heads without a score or with
-- a score that has passed. left is the PTTL of the lock. sweep reports whether there is a new head
-- now.
local function sweep(leaving, time, left)
  local head = redis.call('LINDEX', queue, 0)
  if not head then
    -- Without the list, which another client may have removed, no score belongs to a queue entry.
    if next(leaving) and not redis.call('ZRANGE', scores, max_entries, max_entries)[1] then
      redis.call('DEL', scores, budgets)
    end
    return false
  end
  for _, owner in ipairs(redis.call('ZRANGE', budgets, '-inf', whole(time), 'BYSCORE', 'LIMIT', 0,
    max_swept)) do
    leaving[owner] = true
  end
  local first = head
  if next(leaving) then
    drop(leaving, time + math.max(left, 0))
    first = redis.call('LINDEX', queue, 0)
  end
  local swept = 0
  while first do
    local score = redis.call('ZSCORE', scores, first)
    -- Owners that left may have subtracted their windows from the score of an owner that still
    -- waits.
    if score and (tonumber(score) > time or redis.call('ZSCORE', budgets, first)) then break end
    unswept = swept == max_swept
    if unswept then break end
    swept = swept + 1
    redis.call('LPOP', queue)
    redis.call('ZREM', scores, first)
    first = redis.call('LINDEX', queue, 0)
  end
  if not first then redis.call('DEL', turn) end
  return first ~= head
end
